#include "src/data/text/row_parser.h"

#include <string_view>

#include "satrap/core/error.h"
#include "src/data/rows/field_parse.h"
#include "src/data/text/parse_lines.h"

namespace satrap::data {
namespace {

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

/// Digits from p on as a number, at most 18, so that it fits. Moves p past them.
std::uint64_t take_digits(const char*& p) {
  std::uint64_t value = 0;
  for (int i = 0; i < 18 && is_digit(*p); ++i, ++p) {
    value = value * 10 + static_cast<std::uint64_t>(*p - '0');
  }
  return value;
}

}  // namespace

RowParser::RowParser(const Schema& schema, const RowPass& pass)
    : schema_(schema),
      pass_(pass),
      delimiter_(schema.text.delimiter.front()),
      has_quotes_(!schema.text.quote.empty()),
      row_(schema),
      fields_(schema, row_, schema.text.decimal == Decimal::kComma, pass.texts) {}

void RowParser::parse(const TextBlock& text, RowBlock& rows, BadRows& bad) {
  layout_ = text.layout.get();
  text_ = &text;
  fields_.use_stand_in(text.stand_in);
  parse_lines(*this, text, pass_, row_, rows, bad);
}

FieldFound RowParser::find_selecting(const char* line, std::size_t place, std::string_view& text) {
  return fields_.find(line, layout_->selecting()[place], text);
}

/// The texts of the kept columns of a bad row, if all of its fields are there.
std::vector<std::string> RowParser::kept_of(const char* line, const char* end) const {
  std::vector<std::string> texts(schema_.kept.size());
  if (texts.empty()) return texts;
  std::vector<std::string> fields = split_line(schema_.text, {line, end});
  for (std::string& field : fields) {
    text_->restore_line_ends(field.data(), field.data() + field.size());
  }
  const std::vector<ColumnMap::Column>& columns = layout_->columns();
  for (std::size_t i = 0; i < columns.size() && fields.size() == columns.size(); ++i) {
    for (const ColumnMap::Consumer& consumer : columns[i].consumers) {
      if (consumer.kind != ColumnMap::Kind::kText) continue;
      texts[static_cast<std::size_t>(consumer.target)] = fields[i];
    }
  }
  return texts;
}

/// Parses one line into the open row. Returns the beginning of the next line, or null with fault_
/// set.
const char* RowParser::parse_row(const char* p) {
  using Kind = ColumnMap::Kind;
  const std::vector<ColumnMap::Column>& columns = layout_->columns();
  const char delimiter = delimiter_;
  const auto at_end = [&](const char* q) { return *q == delimiter || *q == '\n'; };

  const ColumnMap::Column* const last = &columns.back();
  for (const ColumnMap::Column* column = columns.data();; ++column) {
    const char* q = p;
    bool done = false;
    switch (column->kind) {
      case Kind::kSkip:
        if (!has_quotes_) {
          q = find_field_end(p, delimiter);
          done = true;
        }
        break;
      case Kind::kLabel:
        row_.label(column->target) = static_cast<float>(*p - '0');
        ++q;
        done = (*p == '0' || *p == '1') && at_end(q);
        break;
      case Kind::kNumber: {
        const bool negative = *q == '-';
        q += negative ? 1 : 0;
        const char* const digits = q;
        const auto magnitude = static_cast<double>(take_digits(q));
        done = at_end(q) && (q != digits || !negative);
        row_.number(column->target) =
            q == digits ? kMissingNumber : (negative ? 0.0 - magnitude : magnitude);
        break;
      }
      case Kind::kInt: {
        const std::uint64_t id = take_digits(q);
        done = at_end(q) && q != p;
        if (done) row_.put_id(column->target, id);
        break;
      }
      case Kind::kHex: {
        std::uint64_t id = 0;
        done = hex8_of(p, id) && at_end(p + 8);
        if (done) {
          row_.put_id(column->target, id);
          q = p + 8;
        }
        break;
      }
      case Kind::kText:
      case Kind::kTime:
      case Kind::kGeneral:
        break;
    }
    if (!done) {
      q = fields_.read(p, *column);
      if (q == nullptr) {
        fault_ = fields_.fault();
        return nullptr;
      }
    }
    p = q + 1;
    if (*q == '\n' ? column != last : column == last) {
      fault_ = {};
      return nullptr;
    }
    if (*q != '\n') continue;
    if (fields_.check_row()) return p;
    fault_ = fields_.fault();
    return nullptr;
  }
}

void RowParser::report(const TextBlock& text,
                       const char* line,
                       std::int64_t line_of_block,
                       BadRows& bad) {
  ++bad.count;
  const std::string_view whole(
      line, static_cast<std::size_t>(skip_lines(line, text.text_end(), 1) - 1 - line));
  const std::size_t num_fields = split_line(schema_.text, whole).size();
  // A field that cannot be read is often one of a row that is shifted: then say that.
  const bool shifted = num_fields != layout_->columns().size() && !fault_.about_quotes;
  const bool is_of_row = (fault_.column == nullptr && fault_.cross.empty()) || shifted;
  const std::string columns = concat("expected ", layout_->columns().size(), " columns");
  ++bad.reasons[is_of_row ? columns : fault_.kind()];
  if (bad.messages.size() >= BadRows::kMaxMessages) return;
  const std::string what = is_of_row ? concat(columns, ", got ", num_fields) : fault_.text();
  bad.messages.push_back(concat(text.place_of(line_of_block), ": ", what));
}

}  // namespace satrap::data
