#include "src/data/text/libsvm_fields.h"

#include <algorithm>
#include <optional>

#include "satrap/core/error.h"
#include "src/data/rows/field_parse.h"
#include "src/data/text/text_block.h"

namespace satrap::data {
namespace {

constexpr std::string_view kWeightSeparator = ":";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// The next word of the line; "" at its end.
std::string_view take_word_of(std::string_view& line) {
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  std::size_t end = 0;
  while (end < line.size() && !is_space(line[end])) ++end;
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

/// Without a sign, so that a text is one number alone unless it begins with 0.
bool index_of(std::string_view text, std::uint64_t& index) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9' && whole_of(text, index);
}

/// "index:value", of which these are the parts.
std::string_view word_of(std::string_view index, std::string_view value) {
  const char* const begin = index.data();
  const char* const end = value.data() + value.size();
  return {begin, static_cast<std::size_t>(end - begin)};
}

/// Who selects rows by this column; null: nobody.
const std::string* selecting_reader(const Schema& schema, const std::string& column) {
  const auto at = std::ranges::find(schema.selecting, column, &Schema::SelectingColumn::column);
  return at == schema.selecting.end() ? nullptr : &at->reader;
}

bool is_one(std::string_view value) {
  double number = 0;
  return value == "1" || (number_of(value, number) == NumberIs::kThere && number == 1.0);
}

}  // namespace

LibsvmFields::LibsvmFields(const Schema& schema, const NamedColumns& columns, bool has_fields)
    : has_fields_(has_fields) {
  for (std::size_t place = 0; place < columns.names.size(); ++place) {
    const std::string& name = columns.names[place];
    check_name(name);
    Column& column = columns_.emplace_back();
    column.column.name = name;
    column.want = want_of(schema, columns, place);
    std::uint64_t index = 0;
    if (index_of(name, index)) {
      places_[index] = place;
      if (!has_fields_) column.want = Want::kValue;
      continue;
    }
    (name == "label" ? label_ : name == "qid" ? qid_ : features_) = place;
    const bool is_single = name != "features";
    if (is_single) column.want = Want::kValue;
    if (const std::string* reader = selecting_reader(schema, name); !is_single && reader) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat(*reader,
                         ": 'features' is all indices of a line, and rows are selected by one "
                         "value: name qid or the number of an index"));
    }
    if (is_single || column.want != Want::kValue) continue;
    throw Error(ErrorCode::kInvalidConfig,
                "data.schema: column 'features' is the indices of a line, which are ids: read it "
                "as a feature");
  }
}

void LibsvmFields::check_name(const std::string& name) const {
  std::uint64_t index = 0;
  const bool is_number = index_of(name, index) && std::to_string(index) == name;
  if (is_number || name == "label" || (!has_fields_ && (name == "qid" || name == "features"))) {
    return;
  }
  throw Error(
      ErrorCode::kInvalidConfig,
      concat("data.schema: there is no column '", name, "' in ",
             has_fields_ ? "libffm, whose columns are label and the numbers of the fields"
                         : "libsvm, whose columns are label, qid, features (all indices of a line) "
                           "and the numbers of the indices"));
}

LibsvmFields::Want LibsvmFields::want_of(const Schema& schema,
                                         const NamedColumns& columns,
                                         std::size_t place) const {
  std::optional<Want> wanted;
  for (const NamedColumns::Use& use : columns.uses) {
    // A column that is kept as a text may be either.
    if (use.place != place || use.consumer().kind == ColumnMap::Kind::kText) continue;
    Want want = Want::kValue;
    if (use.consumer().kind == ColumnMap::Kind::kInt) {
      const FeatureConfig& feature =
          schema.id_columns[static_cast<std::size_t>(use.consumer().target)].config;
      const std::string& separator = feature.weight_separator;
      if (!separator.empty() && separator != kWeightSeparator) {
        throw Error(ErrorCode::kInvalidConfig,
                    concat("data.schema: feature '", feature.name, "': weight_separator is '",
                           separator, "', and in libsvm and libffm it is ':'"));
      }
      want = separator.empty() ? Want::kIds : Want::kWeightedIds;
    }
    if (wanted.value_or(want) != want) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat("data.schema: column '", columns.names[place],
                         "' is read in two ways; in libsvm and libffm a column is either a value, "
                         "or ids, or ids with weights"));
    }
    wanted = want;
  }
  const bool only_selects =
      has_fields_ && selecting_reader(schema, columns.names[place]) != nullptr;
  return wanted.value_or(only_selects ? Want::kWeightedIds : Want::kValue);
}

bool LibsvmFields::is_blank(const char* line) {
  while (is_space(*line)) ++line;
  return *line == '\n' || *line == '#';
}

bool LibsvmFields::find(const char* line, const char* end, LineValues& found) {
  for (Column& column : columns_) column.ids.clear();
  std::string_view rest(line, static_cast<std::size_t>(std::find(line, end, '#') - line));
  const std::string_view label = take_word_of(rest);
  if (label.find(':') != std::string_view::npos) {
    return fail(nullptr, "expected a label as the first word", label);
  }
  if (label_ != kNoColumn) found.values[label_] = {LineValues::Kind::kText, label};
  while (true) {
    const std::string_view word = take_word_of(rest);
    if (word.empty()) break;
    if (!take_word(word, found)) return false;
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    if (column.want == Want::kValue) continue;
    LineValues::Value& list = found.values[i];
    list.kind = LineValues::Kind::kList;
    list.begin = found.elements.size();
    for (const std::string_view id : column.ids) found.elements.push_back({id});
    list.end = found.elements.size();
  }
  return true;
}

bool LibsvmFields::take_word(std::string_view word, LineValues& found) {
  const std::size_t colon = word.rfind(':');
  const std::size_t first = word.find(':');
  const bool has_parts = colon != std::string_view::npos && (first != colon) == has_fields_;
  const std::string_view value = has_parts ? word.substr(colon + 1) : std::string_view();
  if (has_parts && !has_fields_ && word.substr(0, colon) == "qid") {
    return qid_ == kNoColumn || put(qid_, "qid", value, found);
  }
  const std::string_view index =
      has_parts ? (has_fields_ ? word.substr(first + 1, colon - first - 1) : word.substr(0, colon))
                : std::string_view();
  std::uint64_t number = 0, field = 0;
  if (!index_of(index, number) || !is_number(value) ||
      (has_fields_ && !index_of(word.substr(0, first), field))) {
    return fail(nullptr, has_fields_ ? "expected field:index:value" : "expected index:value", word);
  }
  if (features_ != kNoColumn && !put(features_, index, value, found)) return false;
  const auto place = places_.find(has_fields_ ? field : number);
  return place == places_.end() || put(place->second, index, value, found);
}

bool LibsvmFields::put(std::size_t place,
                       std::string_view index,
                       std::string_view value,
                       LineValues& found) {
  Column& column = columns_[place];
  if (column.want == Want::kWeightedIds) {
    column.ids.push_back(word_of(index, value));
  } else if (column.want == Want::kIds) {
    if (!is_one(value)) {
      return fail(&column.column,
                  "expected the value 1; `weight_separator: \":\"` reads values as weights of ids",
                  word_of(index, value));
    }
    column.ids.push_back(index);
  } else {
    LineValues::Value& single = found.values[place];
    if (single.kind != LineValues::Kind::kMissing) {
      return fail(&column.column, "expected one value, and this is the second", value);
    }
    single = {LineValues::Kind::kText, value};
  }
  return true;
}

bool LibsvmFields::fail(const ColumnMap::Column* column,
                        std::string_view reason,
                        std::string_view word) {
  fault_ = {.column = column, .reason = reason, .field = word, .shows_field = true};
  return false;
}

}  // namespace satrap::data
