#include "src/data/text/field_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/text.h"
#include "src/data/rows/field_parse.h"
#include "src/data/rows/time_text.h"

namespace satrap::data {
namespace {

constexpr double kMostWeight = 1e20;  // times those of a label and of its positives it is finite

char first_of(const std::string& text) { return text.empty() ? '\0' : text.front(); }

/// An element of "['a', 'b']", which Python writes, or of '["a", "b"]'; "": a missing one.
std::string_view without_quotes(std::string_view element) {
  if (is_no_number(element)) return {};
  const bool is_quoted = element.size() >= 2 && element.front() == element.back() &&
                         (element.front() == '\'' || element.front() == '"');
  return is_quoted ? element.substr(1, element.size() - 2) : element;
}

}  // namespace

std::string RowFault::kind() const {
  if (!cross.empty()) return concat("cross '", printable(cross), "': ", reason);
  if (column == nullptr) return std::string(reason);
  return concat("column '", printable(column->name), "': ", reason);
}

std::string RowFault::text() const {
  constexpr std::size_t kShownBytes = 40;
  std::string text = kind();
  if (shows_field) {
    const bool cut = field.size() > kShownBytes;
    text += concat(", got \"", printable(field.substr(0, kShownBytes)), cut ? "..." : "", "\"");
  }
  return text;
}

FieldReader::FieldReader(const Schema& schema,
                         RowFiller& row,
                         bool has_decimal_comma,
                         IdTexts* texts)
    : schema_(schema),
      row_(row),
      texts_(texts),
      delimiter_(schema.text.delimiter.front()),
      quote_(first_of(schema.text.quote)),
      has_decimal_comma_(has_decimal_comma),
      trim_(schema.text.trim),
      canonical_(has_decimal_comma ? ',' : '.'),
      crosses_(schema) {
  for (const Schema::IdColumn& column : schema.id_columns) {
    const FeatureConfig& feature = column.config;
    constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
    bags_.push_back({.limit = feature.max_length > 0 ? feature.max_length : kAll,
                     .separator = first_of(feature.separator),
                     .weight_separator = first_of(feature.weight_separator),
                     .keeps_last = feature.keep == KeptIds::kLast,
                     .missing_is_id = feature.missing == MissingId::kOwnId});
  }
  for (const NamedLabelConfig& label : schema.labels) {
    LabelConfig& config = labels_.emplace_back(label.source);
    for (std::string& text : config.positive) text = std::string(comparable(text));
    for (std::string& text : config.negative) text = std::string(comparable(text));
    for (std::string& text : config.values) text = std::string(comparable(text));
    if (!config.values.empty()) classes_ = ClassNumbers(config.values);
  }
}

const char* FieldReader::read(const char* p, const ColumnMap::Column& column) {
  column_ = &column;
  std::string_view field;
  const char* const end = find_field(p, field);
  if (end == nullptr) return nullptr;
  const bool missing = is_missing(field);
  for (const ColumnMap::Consumer& consumer : column.consumers) {
    if (!consume(consumer, field, missing)) return nullptr;
  }
  return end;
}

bool FieldReader::read_value(std::string_view text, bool is_null, const ColumnMap::Column& column) {
  column_ = &column;
  const bool missing = is_null || is_missing(text);
  for (const ColumnMap::Consumer& consumer : column.consumers) {
    if (!consume(consumer, text, missing)) return false;
  }
  return true;
}

FieldFound FieldReader::find(const char* line, std::size_t column, std::string_view& field) {
  const char* end = find_field(line, field);
  for (; column > 0; --column) {
    if (end == nullptr || *end == '\n') return FieldFound::kUnreadable;
    end = find_field(end + 1, field);
  }
  if (end == nullptr) return FieldFound::kUnreadable;
  return is_missing(field) ? FieldFound::kMissing : FieldFound::kText;
}

const char* FieldReader::find_field(const char* p, std::string_view& field) {
  const auto blank = [&](char c) { return trim_ && (c == ' ' || c == '\t') && c != delimiter_; };
  while (blank(*p)) ++p;
  if (quote_ != '\0' && *p == quote_) return unquote(p, field) ? p : nullptr;
  const char* const end = find_field_end(p, delimiter_);
  const char* text_end = end;
  if (*end == '\n' && text_end > p && text_end[-1] == '\r') --text_end;
  while (text_end > p && blank(text_end[-1])) --text_end;
  field = {p, static_cast<std::size_t>(text_end - p)};
  return end;
}

/// A field in quotes (RFC 4180: a quote within is doubled). `p` moves from the opening quote to the
/// delimiter or '\n' after the field.
bool FieldReader::unquote(const char*& p, std::string_view& field) {
  const char* begin = ++p;
  unquoted_.clear();
  while (true) {
    while (*p != quote_ && *p != '\n') ++p;
    if (*p == '\n') {
      return fail_quotes(schema_.text.value_rule == 1
                             ? "a quote is not closed on its line (with data.schema.value_rule: 1 "
                               "line ends within quotes are not read)"
                             : "a quote is not closed within 1 MiB");
    }
    if (p[1] != quote_) break;
    unquoted_.append(begin, p + 1);
    p += 2;
    begin = p;
  }
  field = {begin, static_cast<std::size_t>(p - begin)};
  const bool has_line_ends = stand_in_ != 0 && field.find(stand_in_) != std::string_view::npos;
  if (!unquoted_.empty() || has_line_ends) field = unquoted_.append(field);
  if (stand_in_ != 0) std::ranges::replace(unquoted_, stand_in_, '\n');
  ++p;
  while (*p == ' ' || (*p == '\t' && delimiter_ != '\t')) ++p;
  if (*p == '\r' && p[1] == '\n') ++p;
  if (*p == delimiter_ || *p == '\n') return true;
  return fail_quotes("text after a closing quote");
}

bool FieldReader::is_missing(std::string_view field) const {
  if (field.empty()) return true;
  const std::vector<std::string>& tokens = schema_.text.missing;
  return std::find(tokens.begin(), tokens.end(), field) != tokens.end();
}

bool FieldReader::consume(const ColumnMap::Consumer& consumer,
                          std::string_view field,
                          bool missing) {
  using Kind = ColumnMap::Kind;
  const auto target = static_cast<std::size_t>(consumer.target);
  switch (consumer.kind) {
    case Kind::kLabel:
      if (missing) return miss_label(consumer.target);
      return read_label(labels_[target], field, consumer.target);
    case Kind::kNumber: {
      double& value = row_.number(consumer.target);
      if (!read_number_or_missing(field, missing, value)) return fail_number(field);
      return consumer.target != schema_.weight || check_weight(value, field);
    }
    case Kind::kTime:
      row_.number(consumer.target) = kMissingNumber;
      return missing || read_time(field, row_.number(consumer.target));
    case Kind::kText:
      row_.put_text(consumer.target, field);
      return true;
    default:
      if (!missing) {
        const std::int64_t before = row_.num_ids(consumer.target);
        if (!read_bag(consumer.target, field)) return false;
        if (row_.num_ids(consumer.target) > before || !is_no_number(field)) return true;
      }
      add_missing(consumer.target);
      return true;
  }
}

/// Returns false for what is neither a number nor stands for a missing one.
bool FieldReader::read_number_or_missing(std::string_view field, bool missing, double& value) {
  value = kMissingNumber;
  if (missing || read_number(field, value) == NumberIs::kThere) return true;
  if (is_truth_value(field, value)) return true;
  if (!is_no_number(field)) return false;
  value = kMissingNumber;
  return true;
}

bool FieldReader::check_weight(double weight, std::string_view field) {
  if (std::isnan(weight)) return fail("the weight is missing", {});
  return (weight >= 0.0 && weight <= kMostWeight) ||
         fail("expected a weight of at least 0, and at most 1e20", field);
}

/// One of several labels may be missing.
bool FieldReader::miss_label(std::int64_t target) {
  row_.label(target) = std::numeric_limits<float>::quiet_NaN();
  return labels_.size() > 1 || fail("the label is missing", {});
}

/// In the notation of the schema.
NumberIs FieldReader::read_number(std::string_view text, double& value) {
  if (!has_decimal_comma_) return number_of(text, value);
  if (text.find('.') != std::string_view::npos) return NumberIs::kNone;
  with_point_ = text;
  std::ranges::replace(with_point_, ',', '.');
  return number_of(with_point_, value);
}

bool FieldReader::read_time(std::string_view text, double& value) {
  TimeIs time = time_of_text(text, value);
  if (double number = 0; time == TimeIs::kNone && read_number(text, number) == NumberIs::kThere) {
    time = time_of_number(number, value);
  }
  if (time != TimeIs::kNone || is_no_number(text)) return true;
  return fail(
      "expected a time such as 2026-11-20, 2026-11-20T21:05:09Z or seconds since 1970, of "
      "the years 1 to 9999",
      text);
}

void FieldReader::add_missing(std::int64_t target) {
  if (bags_[static_cast<std::size_t>(target)].missing_is_id) row_.push_id(target, kMissingId, 1.0F);
}

/// The form in which a text is compared with those of the schema. Valid until the next call.
std::string_view FieldReader::comparable(std::string_view text) {
  return schema_.text.value_rule == 1 ? text : canonical_.of_text(text);
}

bool FieldReader::read_positive(const LabelConfig& config, std::string_view field, float& label) {
  const auto is_one_of = [&](const std::vector<std::string>& texts) {
    const auto has = [&](std::string_view text) {
      return std::ranges::find(texts, text) != texts.end();
    };
    const std::string_view text = comparable(field);
    if (has(text) || schema_.text.value_rule == 1) return has(text);
    return (text == "true" && has("1")) || (text == "false" && has("0"));
  };
  label = is_one_of(config.positive) ? 1.0F : 0.0F;
  return label == 1.0F || config.negative.empty() || is_one_of(config.negative) ||
         fail("not among the label's positive and negative texts", field);
}

bool FieldReader::read_label(const LabelConfig& config,
                             std::string_view field,
                             std::int64_t target) {
  float& label = row_.label(target);
  if (!config.positive.empty()) return read_positive(config, field, label);
  if (!config.values.empty()) {
    const auto number = classes_.find(comparable(field));
    label = number.value_or(0.0F);
    return number || fail("not among the `values` of the label's classes", field);
  }
  double number = 0;
  if (read_number(field, number) != NumberIs::kThere && !is_truth_value(field, number)) {
    return is_no_number(field) ? miss_label(target) : fail_number(field);
  }
  if (!config.threshold.empty()) {
    number = schema_.text.rounded(number) >= config.threshold.front() ? 1.0 : 0.0;
  }
  label = static_cast<float>(number);
  if (config.is_number()) return true;
  const bool is_whole = number == static_cast<double>(label);
  return (is_whole && config.allows(label)) ||
         fail(config.has_classes()
                  ? "expected the number of a class, from 0 to `classes` - 1"
                  : "expected 0 or 1 (`positive` or `threshold` say what else means 1)",
              field);
}

/// One id, or the ids of a bag, which may be in brackets.
bool FieldReader::read_bag(std::int64_t target, std::string_view field) {
  const char separator = bags_[static_cast<std::size_t>(target)].separator;
  if (separator == '\0') {
    return read_elements(target, [&](std::string_view& element) {
      element = std::exchange(field, {});
      return !element.empty();
    });
  }
  const bool is_in_brackets = schema_.text.value_rule != 1 && field.size() >= 2 &&
                              field.front() == '[' && field.back() == ']';
  if (is_in_brackets) field = field.substr(1, field.size() - 2);
  return read_elements(target, [&](std::string_view& element) {
    if (field.empty()) return false;
    element = std::exchange(field, {});
    const std::size_t end = element.find(separator);
    if (end != std::string_view::npos) field = element.substr(end + 1);
    element = element.substr(0, end);
    while ((trim_ || is_in_brackets) && element.starts_with(' ')) element.remove_prefix(1);
    while ((trim_ || is_in_brackets) && element.ends_with(' ')) element.remove_suffix(1);
    if (is_in_brackets) element = without_quotes(element);
    return true;
  });
}

/// An id, maybe with its weight. An empty one counts for nothing.
bool FieldReader::read_element(std::int64_t target, std::string_view element) {
  const FeatureConfig& feature = schema_.id_columns[static_cast<std::size_t>(target)].config;
  const char weight_separator = bags_[static_cast<std::size_t>(target)].weight_separator;
  double weight = 1.0;
  if (weight_separator != '\0') {
    const std::size_t colon = element.rfind(weight_separator);
    if (colon != std::string_view::npos) {
      if (read_number(element.substr(colon + 1), weight) != NumberIs::kThere) {
        return fail("expected a number as the weight", element);
      }
      element = element.substr(0, colon);
    }
  }
  if (element.empty()) return true;
  std::uint64_t id = 0;
  if (!read_id(feature, element, id)) return is_no_number(element);
  row_.push_id(target, id, static_cast<float>(weight));
  return true;
}

bool FieldReader::read_id(const FeatureConfig& feature, std::string_view text, std::uint64_t& id) {
  switch (feature.type) {
    case IdType::kInt:
      if (!read_int(text, id)) return fail("expected an integer of 64 bits", text);
      // Any other is the text of its bits with a sign.
      if (texts_ != nullptr && id >> 63 != 0 && !text.starts_with('-')) {
        texts_->add(id, comparable(text));
      }
      return true;
    case IdType::kHex:
      return hex_of(text, id) || fail("expected up to 16 hex digits", text);
    case IdType::kString:
      break;
  }
  text = comparable(text);
  id = hash_bytes(text);
  if (texts_ != nullptr) texts_->add(id, text);
  return true;
}

bool FieldReader::read_int(std::string_view text, std::uint64_t& id) {
  if (int_of(text, id)) return true;
  if (schema_.text.value_rule == 1) return false;
  double truth = 0;
  const bool is_truth = is_truth_value(text, truth);
  if (is_truth) id = static_cast<std::uint64_t>(truth);
  return is_truth || int_of(canonical_.of_text(text), id);
}

bool FieldReader::check_crosses() {
  const auto [cross, first, second] = crosses_.find(row_);
  if (cross == nullptr) return true;
  num_ids_ = concat(first, " x ", second);
  fault_ = {.reason = "more than 65536 pairs of ids in a row; give its features a max_length",
            .field = num_ids_,
            .shows_field = true,
            .cross = cross->config.name};
  static_assert(kMostPairs == 65'536);
  return false;
}

bool FieldReader::fail(std::string_view reason, std::string_view field) {
  fault_ = {column_, reason, field, field.data() != nullptr, false};
  return false;
}

bool FieldReader::fail_number(std::string_view field) {
  double value = 0;
  if (read_number(field, value) == NumberIs::kTooLarge) {
    return fail("the number is too large: at most 3.4e38 in size", field);
  }
  if (is_infinity(field)) {
    return fail("infinity is no number to learn from; data.schema.missing can name it", field);
  }
  return fail(has_decimal_comma_ ? "expected a number, with a decimal comma (data.schema.decimal)"
                                 : "expected a number",
              field);
}

bool FieldReader::fail_quotes(std::string_view reason) {
  fault_ = {column_, reason, {}, false, true};
  return false;
}

}  // namespace satrap::data
