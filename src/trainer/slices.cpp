#include "src/trainer/slices.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/text.h"

namespace satrap::trainer {
namespace {

/// A text as ranks exchange it.
struct PackedText {
  std::uint64_t is_known, size;
  std::array<char, FrequentTexts::kMaxBytes> bytes;
};
constexpr std::size_t kPackedWords = sizeof(PackedText) / sizeof(std::uint64_t);

struct SliceRows {
  std::vector<float> probabilities, labels, weights;
};

}  // namespace

void SliceColumn::add(const data::Texts& texts) {
  for (std::int64_t row = 0; row < texts.size(); ++row) {
    hashes_.push_back(hash_bytes(texts.at(row)));
    texts_.add(hashes_.back(), texts.at(row));
  }
}

void SliceColumn::gather(pipeline::RankGroup& ranks) {
  const std::vector<std::uint64_t> all = ranks.gather(hashes_);
  hashes_ = {};
  const std::vector<std::uint64_t> frequent = most_frequent(all, kMaxSlices);
  values_ = texts_of(frequent, ranks);
  std::unordered_map<std::uint64_t, std::uint8_t> slice_of;
  for (const std::uint64_t hash : frequent) {
    slice_of.emplace(hash, static_cast<std::uint8_t>(slice_of.size()));
  }
  slices_.clear();
  slices_.reserve(all.size());
  for (const std::uint64_t hash : all) {
    const auto found = slice_of.find(hash);
    slices_.push_back(found == slice_of.end() ? static_cast<std::uint8_t>(values_.size())
                                              : found->second);
  }
}

/// Each is known to a rank (most_frequent).
std::vector<std::string> SliceColumn::texts_of(const std::vector<std::uint64_t>& frequent,
                                               pipeline::RankGroup& ranks) const {
  std::vector<std::uint64_t> mine(frequent.size() * kPackedWords);
  for (std::size_t i = 0; i < frequent.size(); ++i) {
    const std::string* text = texts_.find(frequent[i]);
    if (text == nullptr) continue;
    PackedText packed{.is_known = 1, .size = text->size(), .bytes = {}};
    std::memcpy(packed.bytes.data(), text->data(), text->size());
    std::memcpy(&mine[i * kPackedWords], &packed, sizeof packed);
  }
  const std::vector<std::uint64_t> all = ranks.gather(mine);
  std::vector<std::string> texts(frequent.size());
  for (std::size_t i = 0; i < frequent.size(); ++i) {
    PackedText packed{};
    for (std::size_t at = i * kPackedWords; at < all.size() && packed.is_known == 0;
         at += mine.size()) {
      std::memcpy(&packed, &all[at], sizeof packed);
    }
    SATRAP_CHECK(packed.is_known == 1 && packed.size <= packed.bytes.size(), "no rank has value ",
                 i, " of column ", name_);
    texts[i] = printable({packed.bytes.data(), packed.size});
  }
  return texts;
}

SlicedColumn SliceColumn::evaluate(const CountedRows& counted, job::Loss loss) const {
  std::vector<std::uint8_t> memory;
  const auto slices = counted.of(std::span<const std::uint8_t>(slices_), memory);
  const ScoredRows& rows = counted.rows();
  const std::size_t num_scores = loss == job::Loss::kSoftmax ? 2 : 1;
  std::vector<SliceRows> divided(values_.size() + 1);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    SliceRows& slice = divided[slices[i]];
    for (std::size_t k = 0; k < num_scores; ++k) {
      slice.probabilities.push_back(rows.probabilities[i * num_scores + k]);
    }
    slice.labels.push_back(rows.labels[i]);
    if (!rows.weights.empty()) slice.weights.push_back(rows.weights[i]);
  }
  SlicedColumn column{.name = name_};
  for (std::size_t s = 0; s < divided.size(); ++s) {
    const SliceRows& slice = divided[s];
    const bool is_rest = s == values_.size();
    if (is_rest && slice.labels.empty()) break;
    column.slices.push_back(
        {.value = is_rest ? std::nullopt : std::optional(values_[s]),
         .metrics = compute_metrics({slice.probabilities, slice.labels, slice.weights}, loss)});
  }
  return column;
}

}  // namespace satrap::trainer
