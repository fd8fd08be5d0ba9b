#include "src/data/columnar/single_ids.h"

#include <algorithm>
#include <utility>

#include "src/data/rows/field_parse.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kHexDigits = 8;

/// The ids of texts that all have eight hex digits, or are empty: the ids of the others, one after
/// the other, in `ids`, of at least as many. False: other texts are among them. There is at least
/// one text. No loop has branches, so that each takes several at a time.
bool pack_hex8(const Texts& texts, std::vector<std::uint64_t>& ids) {
  std::int64_t other_bits = texts.ends.front() & ~kHexDigits;
  for (std::size_t r = 1; r < texts.ends.size(); ++r) {
    other_bits |= (texts.ends[r] - texts.ends[r - 1]) & ~kHexDigits;
  }
  if (other_bits != 0) return false;
  std::uint64_t faults = 0;
  const std::size_t num_ids = texts.bytes.size() / kHexDigits;
  for (std::size_t i = 0; i < num_ids; ++i) {
    const std::uint64_t word = load8(texts.bytes.data() + i * kHexDigits);
    faults |= hex8_faults(word);
    ids[i] = hex8_value(word);
  }
  return faults == 0;
}

}  // namespace

void SingleIds::Ids::resize(std::size_t size) {
  ids.resize(size);
  what.resize(size);
}

void SingleIds::find(const ParquetValues& values,
                     ParquetFile::Kind kind,
                     const FeatureConfig& feature,
                     std::size_t num_rows,
                     FieldReader& fields) {
  values_ = &values;
  rows_.resize(num_rows);
  are_usual_ = true;
  const bool have_id_of_missing = feature.missing == MissingId::kOwnId;
  is_packed_ = kind == ParquetFile::Kind::kText && values.dictionary == nullptr &&
               feature.type == IdType::kHex && !fields.has_missing_texts() &&
               pack_hex8(values.texts, rows_.ids);
  if (is_packed_ && !have_id_of_missing) return;
  rows_.are_ids = true;
  std::ranges::fill(rows_.what, Is::kId);
  if (is_packed_) {
    unpack();
  } else if (kind != ParquetFile::Kind::kText) {
    std::ranges::transform(values.integers, rows_.ids.begin(),
                           [](std::int64_t id) { return static_cast<std::uint64_t>(id); });
  } else if (values.dictionary == nullptr) {
    find_texts(feature, fields);
  } else {
    find_entries(feature, fields);
  }
  find_nulls(have_id_of_missing);
}

void SingleIds::find_texts(const FeatureConfig& feature, FieldReader& fields) {
  for (std::size_t r = 0; r < rows_.ids.size(); ++r) {
    rows_.find(feature, values_->texts.at(static_cast<std::int64_t>(r)), r, fields);
  }
}

void SingleIds::find_entries(const FeatureConfig& feature, FieldReader& fields) {
  const auto num_entries = static_cast<std::size_t>(values_->dictionary->size());
  std::size_t entry = entries_.ids.size();
  entries_.resize(num_entries);
  for (; entry < num_entries; ++entry) {
    entries_.find(feature, values_->dictionary->at(static_cast<std::int64_t>(entry)), entry,
                  fields);
  }
  if (num_entries == 0) return;
  for (std::size_t r = 0; r < rows_.ids.size(); ++r) {
    rows_.ids[r] = entries_.ids[static_cast<std::size_t>(values_->codes[r])];
  }
  rows_.are_ids = entries_.are_ids;
  if (rows_.are_ids) return;
  for (std::size_t r = 0; r < rows_.ids.size(); ++r) {
    rows_.what[r] = entries_.what[static_cast<std::size_t>(values_->codes[r])];
  }
}

/// Each loop takes several at a time: where the nulls are cannot be foreseen.
void SingleIds::find_nulls(bool have_id_of_missing) {
  if (rows_.are_ids && values_->presence.empty()) return;
  for (std::size_t r = 0; r < values_->presence.size(); ++r) {
    rows_.what[r] = values_->presence[r] != 0 ? rows_.what[r] : Is::kNone;
  }
  for (std::size_t r = 0; r < rows_.ids.size(); ++r) {
    rows_.ids[r] = rows_.what[r] != Is::kNone ? rows_.ids[r] : kMissingId;
  }
  if (have_id_of_missing) {
    for (Is& what : rows_.what) what = what != Is::kNone ? what : Is::kId;
  }
  are_usual_ = rows_.are_ids || std::ranges::count(rows_.what, Is::kUnusual) == 0;
}

/// Moves ids that are packed to their rows; the others have none.
void SingleIds::unpack() {
  if (!is_packed_) return;
  is_packed_ = false;
  const Texts& texts = values_->texts;
  std::size_t left = texts.bytes.size() / kHexDigits;
  rows_.are_ids = left == rows_.ids.size();
  for (std::size_t r = rows_.ids.size(); r-- > 0;) {
    const bool has_id = !texts.at(static_cast<std::int64_t>(r)).empty();
    rows_.what[r] = has_id ? Is::kId : Is::kNone;
    if (has_id) rows_.ids[r] = rows_.ids[--left];
  }
}

void SingleIds::put(RowBlock::Bags& bags) {
  const std::size_t num_rows = rows_.ids.size();
  if (is_packed_) {
    std::swap(bags.ids, rows_.ids);
    for (std::size_t r = 0; r < num_rows; ++r) {
      bags.offsets[r + 1] = values_->texts.ends[r] / kHexDigits;
    }
    return;
  }
  std::size_t size = 0;
  for (std::size_t r = 0; r < num_rows; ++r) {
    bags.ids[size] = rows_.ids[r];
    size += rows_.what[r] == Is::kId ? 1 : 0;
    bags.offsets[r + 1] = static_cast<std::int64_t>(size);
  }
}

void SingleIds::Ids::find(const FeatureConfig& feature,
                          std::string_view text,
                          std::size_t i,
                          FieldReader& fields) {
  ids[i] = 0;
  what[i] = fields.is_missing(text)                 ? Is::kNone
            : fields.read_id(feature, text, ids[i]) ? Is::kId
                                                    : Is::kUnusual;
  are_ids = are_ids && what[i] == Is::kId;
}

}  // namespace satrap::data
