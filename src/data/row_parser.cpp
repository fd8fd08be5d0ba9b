#include "src/data/row_parser.h"

#include <algorithm>
#include <limits>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "src/data/field_parse.h"

namespace satrap::data {
namespace {

using Kind = RowLayout::Kind;

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kShownBytes = 40;  // of a field in a message

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

/// Digits from p on as a number, at most 18, so that it fits. Moves p past them.
std::uint64_t take_digits(const char*& p) {
  std::uint64_t value = 0;
  for (int i = 0; i < 18 && is_digit(*p); ++i, ++p) {
    value = value * 10 + static_cast<std::uint64_t>(*p - '0');
  }
  return value;
}

const char* skip_lines(const char* p, const char* end, std::int64_t lines) {
  for (; lines > 0 && p < end; --lines) {
    p = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p))) + 1;
  }
  return p;
}

}  // namespace

RowParser::RowParser(const Schema& schema, const RowPass& pass)
    : schema_(schema),
      pass_(pass),
      delimiter_(schema.text.delimiter.front()),
      quote_(schema.text.quote.empty() ? '\0' : schema.text.quote.front()),
      trim_(schema.text.trim),
      num_labels_(schema.labels.size()) {}

void RowParser::parse(const TextBlock& text, RowBlock& rows, BadRows& bad) {
  layout_ = text.layout.get();
  bad.count = 0;
  bad.messages.clear();
  prepare(text, rows);
  const char* p = text.text_begin();
  const char* const end = text.text_end();
  const std::int64_t end_row = pass_.max_rows > 0
                                   ? std::min(text.first_row + text.num_lines, pass_.max_rows)
                                   : text.first_row + text.num_lines;
  std::int64_t row = text.first_row;
  while (row < end_row) {
    if (row < pass_.first_row) {
      const std::int64_t skipped = std::min(pass_.first_row, end_row) - row;
      p = skip_lines(p, end, skipped);
      row += skipped;
      continue;
    }
    const std::int64_t run_end = row + std::min(pass_.split.run(row), end_row - row);
    if (!pass_.split.owns(row)) {
      p = skip_lines(p, end, run_end - row);
      row = run_end;
      continue;
    }
    for (; row < run_end; ++row) {
      const char* const line = p;
      if (is_blank_line(p)) {
        p += *p == '\n' ? 1 : 2;
        if (pass_.keeps_every_line) add_row_without_values(row, rows);
        continue;
      }
      p = parse_row(p, rows);
      if (p != nullptr) {
        rows.row_numbers[row_] = row;
        ++row_;
        continue;
      }
      for (std::size_t i = 0; i < bag_sizes_.size(); ++i) {
        bag_sizes_[i] = rows.bags[i].offsets[row_];
      }
      report(text, line, text.file_line + (row - text.first_row), bad);
      p = skip_lines(line, end, 1);
      if (pass_.keeps_every_line) add_row_without_values(row, rows);
    }
  }
  finish(rows);
}

/// Makes room for as many rows as the block has lines. Vectors only ever shrink to what was filled,
/// so that growing them again touches little.
void RowParser::prepare(const TextBlock& text, RowBlock& rows) {
  const auto lines = static_cast<std::size_t>(text.num_lines);
  row_ = 0;
  rows.num_labels = schema_.num_labels();
  rows.labels.resize(lines * num_labels_);
  if (!schema_.labelled) std::fill(rows.labels.begin(), rows.labels.end(), 0.0F);
  rows.row_numbers.resize(lines);
  rows.numeric.resize(schema_.raw_numeric.size());
  for (std::vector<float>& column : rows.numeric) column.resize(lines);
  rows.bags.resize(schema_.id_columns.size());
  bag_sizes_.assign(schema_.id_columns.size(), 0);
  for (std::size_t i = 0; i < rows.bags.size(); ++i) {
    RowBlock::Bags& bags = rows.bags[i];
    bags.offsets.resize(lines + 1);
    bags.offsets[0] = 0;
    if (bags.ids.size() < lines) bags.ids.resize(lines);
    const bool weighted = !schema_.id_columns[i].config.weight_separator.empty();
    bags.weights.resize(weighted ? bags.ids.size() : 0);
  }
}

void RowParser::add_row_without_values(std::int64_t row, RowBlock& rows) {
  std::fill_n(&label_of_row(0, rows), num_labels_, kMissing);
  for (std::vector<float>& column : rows.numeric) column[row_] = kMissing;
  for (std::size_t i = 0; i < rows.bags.size(); ++i) {
    rows.bags[i].offsets[row_ + 1] = bag_sizes_[i];
  }
  rows.row_numbers[row_] = row;
  ++row_;
}

void RowParser::finish(RowBlock& rows) {
  rows.num_rows = static_cast<std::int64_t>(row_);
  rows.first_row = 0;
  rows.labels.resize(row_ * num_labels_);
  rows.row_numbers.resize(row_);
  if (row_ > 0) rows.first_row = rows.row_numbers.front();
  for (std::vector<float>& column : rows.numeric) column.resize(row_);
  for (RowBlock::Bags& bags : rows.bags) {
    bags.offsets.resize(row_ + 1);
    const auto size = static_cast<std::size_t>(bags.offsets.back());
    bags.ids.resize(size);
    if (!bags.weights.empty()) bags.weights.resize(size);
  }
}

/// Parses one line into row number row_. Returns the beginning of the next line, or null with
/// fault_ set; what a bad row left behind is overwritten by the next row.
const char* RowParser::parse_row(const char* p, RowBlock& rows) {
  const std::vector<RowLayout::Column>& columns = layout_->columns();
  const char delimiter = delimiter_;
  const auto at_end = [&](const char* q) { return *q == delimiter || *q == '\n'; };

  const RowLayout::Column* const last = &columns.back();
  for (const RowLayout::Column* column = columns.data();; ++column) {
    const char* q = p;
    bool done = false;
    switch (column->kind) {
      case Kind::kSkip:
        if (quote_ == '\0') {
          q = find_field_end(p, delimiter);
          done = true;
        }
        break;
      case Kind::kLabel:
        label_of_row(column->target, rows) = static_cast<float>(*p - '0');
        ++q;
        done = (*p == '0' || *p == '1') && at_end(q);
        break;
      case Kind::kNumber: {
        const bool negative = *q == '-';
        q += negative ? 1 : 0;
        const char* const digits = q;
        // Through double, as number_of does it.
        const auto magnitude = static_cast<float>(static_cast<double>(take_digits(q)));
        done = at_end(q) && (q != digits || !negative);
        rows.numeric[static_cast<std::size_t>(column->target)][row_] =
            q == digits ? kMissing : (negative ? -magnitude : magnitude);
        break;
      }
      case Kind::kInt: {
        const std::uint64_t id = take_digits(q);
        done = at_end(q) && q != p;
        if (done) {
          const auto target = static_cast<std::size_t>(column->target);
          rows.bags[target].ids[static_cast<std::size_t>(bag_sizes_[target]++)] = id;
        }
        break;
      }
      case Kind::kHex: {
        std::uint64_t id = 0;
        done = hex8_of(p, id) && at_end(p + 8);
        if (done) {
          const auto target = static_cast<std::size_t>(column->target);
          rows.bags[target].ids[static_cast<std::size_t>(bag_sizes_[target]++)] = id;
          q = p + 8;
        }
        break;
      }
      case Kind::kGeneral:
        break;
    }
    if (!done) {
      q = parse_general(p, *column, rows);
      if (q == nullptr) return nullptr;
    }
    p = q + 1;
    if (*q == '\n' ? column != last : column == last) {
      fault_ = {};
      return nullptr;
    }
    if (*q == '\n') break;
  }
  for (std::size_t i = 0; i < rows.bags.size(); ++i) {
    rows.bags[i].offsets[row_ + 1] = bag_sizes_[i];
  }
  return p;
}

/// Any field, for all who want it. Returns its end (at the delimiter or '\n'), or null with fault_
/// set.
const char* RowParser::parse_general(const char* p,
                                     const RowLayout::Column& column,
                                     RowBlock& rows) {
  std::string_view field;
  const char* const end = find_field(p, column, field);
  if (end == nullptr) return nullptr;
  const bool missing = is_missing(field);
  for (const RowLayout::Consumer& consumer : column.consumers) {
    if (!consume(consumer, field, missing, column, rows)) return nullptr;
  }
  return end;
}

const char* RowParser::find_field(const char* p,
                                  const RowLayout::Column& column,
                                  std::string_view& field) {
  const auto blank = [&](char c) { return trim_ && (c == ' ' || c == '\t') && c != delimiter_; };
  while (blank(*p)) ++p;
  if (quote_ != '\0' && *p == quote_) return unquote(p, column, field) ? p : nullptr;
  const char* const end = find_field_end(p, delimiter_);
  const char* text_end = end;
  if (*end == '\n' && text_end > p && text_end[-1] == '\r') --text_end;
  while (text_end > p && blank(text_end[-1])) --text_end;
  field = {p, static_cast<std::size_t>(text_end - p)};
  return end;
}

/// A field in quotes (RFC 4180: a quote within is doubled). `p` moves from the opening quote to the
/// delimiter or '\n' after the field.
bool RowParser::unquote(const char*& p, const RowLayout::Column& column, std::string_view& field) {
  const char* begin = ++p;
  unquoted_.clear();
  while (true) {
    while (*p != quote_ && *p != '\n') ++p;
    if (*p == '\n') {
      return fail_quotes(
          column, "a quote is not closed on its line (line ends within quotes are not read)");
    }
    if (p[1] != quote_) break;
    unquoted_.append(begin, p + 1);
    p += 2;
    begin = p;
  }
  field = {begin, static_cast<std::size_t>(p - begin)};
  if (!unquoted_.empty()) field = unquoted_.append(field);
  ++p;
  while (*p == ' ' || (*p == '\t' && delimiter_ != '\t')) ++p;
  if (*p == '\r' && p[1] == '\n') ++p;
  if (*p == delimiter_ || *p == '\n') return true;
  return fail_quotes(column, "text after a closing quote");
}

bool RowParser::consume(const RowLayout::Consumer& consumer,
                        std::string_view field,
                        bool missing,
                        const RowLayout::Column& column,
                        RowBlock& rows) {
  const auto target = static_cast<std::size_t>(consumer.target);
  switch (consumer.kind) {
    case Kind::kLabel:
      if (missing) return fail(column, "the label is missing", {});
      return parse_label(schema_.labels[target].source, field, column,
                         label_of_row(consumer.target, rows));
    case Kind::kNumber: {
      float& value = rows.numeric[target][row_];
      value = kMissing;
      return missing || number_of(field, value) || fail(column, "expected a number", field);
    }
    default:
      if (!missing) return parse_bag(consumer.target, field, column, rows);
      if (schema_.id_columns[target].config.missing == "own_id") {
        push_id(consumer.target, kMissingId, 1.0F, rows);
      }
      return true;
  }
}

bool RowParser::parse_label(const LabelConfig& config,
                            std::string_view field,
                            const RowLayout::Column& column,
                            float& label) {
  const auto is_one_of = [&](const std::vector<std::string>& texts) {
    return std::find(texts.begin(), texts.end(), field) != texts.end();
  };
  if (!config.positive.empty()) {
    label = is_one_of(config.positive) ? 1.0F : 0.0F;
    return label == 1.0F || config.negative.empty() || is_one_of(config.negative) ||
           fail(column, "not among the label's positive and negative texts", field);
  }
  if (!number_of(field, label)) return fail(column, "expected a number", field);
  if (!config.threshold.empty()) {
    label = static_cast<double>(label) >= config.threshold.front() ? 1.0F : 0.0F;
  }
  return label == 0.0F || label == 1.0F || fail(column, "expected 0 or 1", field);
}

/// One id, or the ids of a bag. Empty elements count for nothing.
bool RowParser::parse_bag(std::int64_t target,
                          std::string_view field,
                          const RowLayout::Column& column,
                          RowBlock& rows) {
  const FeatureConfig& feature = schema_.id_columns[static_cast<std::size_t>(target)].config;
  const std::int64_t limit =
      feature.max_length > 0 ? feature.max_length : std::numeric_limits<std::int64_t>::max();
  const bool keeps_last = feature.keep == "last";
  const auto at = static_cast<std::size_t>(target);
  const std::int64_t begin = rows.bags[at].offsets[row_];

  while (!field.empty() && (keeps_last || bag_sizes_[at] - begin < limit)) {
    std::string_view element = field;
    if (!feature.separator.empty()) {
      const std::size_t end = field.find(feature.separator.front());
      element = field.substr(0, end);
      field = end == std::string_view::npos ? std::string_view{} : field.substr(end + 1);
      while (trim_ && element.starts_with(' ')) element.remove_prefix(1);
      while (trim_ && element.ends_with(' ')) element.remove_suffix(1);
    } else {
      field = {};
    }
    float weight = 1.0F;
    if (!feature.weight_separator.empty()) {
      const std::size_t colon = element.rfind(feature.weight_separator.front());
      if (colon != std::string_view::npos) {
        if (!number_of(element.substr(colon + 1), weight)) {
          return fail(column, "expected a number as the weight", element);
        }
        element = element.substr(0, colon);
      }
    }
    if (element.empty()) continue;
    std::uint64_t id = 0;
    if (!parse_id(feature, element, column, id)) return false;
    push_id(target, id, weight, rows);
  }

  const std::int64_t excess = bag_sizes_[at] - begin - limit;
  if (excess > 0) {
    RowBlock::Bags& bags = rows.bags[at];
    const auto first = static_cast<std::ptrdiff_t>(begin);
    const auto size = static_cast<std::ptrdiff_t>(bag_sizes_[at]);
    std::copy(bags.ids.begin() + first + excess, bags.ids.begin() + size, bags.ids.begin() + first);
    if (!bags.weights.empty()) {
      std::copy(bags.weights.begin() + first + excess, bags.weights.begin() + size,
                bags.weights.begin() + first);
    }
    bag_sizes_[at] -= excess;
  }
  return true;
}

bool RowParser::parse_id(const FeatureConfig& feature,
                         std::string_view text,
                         const RowLayout::Column& column,
                         std::uint64_t& id) {
  switch (feature.type.front()) {
    case 'i':
      return int_of(text, id) || fail(column, "expected an integer of 64 bits", text);
    case 'h':
      return hex_of(text, id) || fail(column, "expected up to 16 hex digits", text);
    default:
      id = hash_bytes(text);
      return true;
  }
}

void RowParser::push_id(std::int64_t target, std::uint64_t id, float weight, RowBlock& rows) {
  RowBlock::Bags& bags = rows.bags[static_cast<std::size_t>(target)];
  const auto at = static_cast<std::size_t>(bag_sizes_[static_cast<std::size_t>(target)]++);
  const bool weighted =
      !schema_.id_columns[static_cast<std::size_t>(target)].config.weight_separator.empty();
  if (at == bags.ids.size()) {
    bags.ids.resize(at * 2 + 16);
    if (weighted) bags.weights.resize(bags.ids.size());
  }
  bags.ids[at] = id;
  if (weighted) bags.weights[at] = weight;
}

bool RowParser::is_missing(std::string_view field) const {
  if (field.empty()) return true;
  const std::vector<std::string>& tokens = schema_.text.missing;
  return std::find(tokens.begin(), tokens.end(), field) != tokens.end();
}

bool RowParser::fail(const RowLayout::Column& column,
                     std::string_view reason,
                     std::string_view field) {
  fault_ = {&column, reason, field, field.data() != nullptr, false};
  return false;
}

bool RowParser::fail_quotes(const RowLayout::Column& column, std::string_view reason) {
  fault_ = {&column, reason, {}, false, true};
  return false;
}

void RowParser::report(const TextBlock& text,
                       const char* line,
                       std::int64_t line_number,
                       BadRows& bad) {
  ++bad.count;
  if (bad.messages.size() >= BadRows::kMaxMessages) return;
  std::string message = concat(*text.file, ":", line_number, ": ");
  const std::string_view whole(
      line, static_cast<std::size_t>(skip_lines(line, text.text_end(), 1) - 1 - line));
  const std::size_t num_fields = split_line(schema_.text, whole).size();
  // A field that cannot be read is often one of a row that is shifted: then say that.
  const bool shifted = num_fields != layout_->columns().size() && !fault_.about_quotes;
  if (fault_.column == nullptr || shifted) {
    message += concat("expected ", layout_->columns().size(), " columns, got ", num_fields);
  } else {
    message += concat("column '", fault_.column->name, "': ", fault_.reason);
    if (fault_.shows_field) {
      const bool cut = fault_.field.size() > kShownBytes;
      message += concat(", got \"", fault_.field.substr(0, kShownBytes), cut ? "..." : "", "\"");
    }
  }
  bad.messages.push_back(std::move(message));
}

}  // namespace satrap::data
