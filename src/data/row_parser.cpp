#include "src/data/row_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "satrap/core/error.h"
#include "src/data/field_parse.h"
#include "src/data/row_part.h"

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
      has_quotes_(!schema.text.quote.empty()),
      row_(schema),
      fields_(schema, row_, pass.texts) {}

void RowParser::parse(const TextBlock& text, RowBlock& rows, BadRows& bad) {
  layout_ = text.layout.get();
  bad.count = 0;
  bad.messages.clear();
  bad.reasons.clear();
  row_.begin(rows, text.num_lines);
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
      if (pass_.part != nullptr && !is_in_part(line, row)) {
        p = skip_lines(line, end, 1);
        continue;
      }
      if (is_blank_line(p)) {
        p += *p == '\n' ? 1 : 2;
        if (pass_.keeps_every_line) row_.add_row_without_values(row);
        continue;
      }
      p = parse_row(p);
      if (p != nullptr) {
        row_.end_row(row);
        continue;
      }
      row_.drop_row();
      report(text, line, row - text.first_row, bad);
      p = skip_lines(line, end, 1);
      if (pass_.keeps_every_line) row_.add_row_without_values(row, kept_of({line, p - 1}));
    }
  }
  row_.finish();
}

/// A row without a value in the column that divides the rows, or with wrong quotes up to there,
/// goes by its number, as all do if there is no such column.
bool RowParser::is_in_part(const char* line, std::int64_t row) {
  std::string_view field;
  const std::int64_t column = is_blank_line(line) ? -1 : layout_->dividing_column();
  if (column >= 0 && fields_.find(line, column, field)) return pass_.part->has(field);
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), row).ptr;
  return pass_.part->has({digits.data(), end});
}

/// The texts of the kept columns of a bad row, if all of its fields are there.
std::vector<std::string> RowParser::kept_of(std::string_view line) const {
  std::vector<std::string> texts(schema_.kept.size());
  if (texts.empty()) return texts;
  const std::vector<std::string> fields = split_line(schema_.text, line);
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
        // Through double, as number_of does it.
        const auto magnitude = static_cast<float>(static_cast<double>(take_digits(q)));
        done = at_end(q) && (q != digits || !negative);
        row_.number(column->target) =
            q == digits ? kMissingNumber : (negative ? -magnitude : magnitude);
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
    if (*q == '\n') return p;
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
  const bool is_of_row = fault_.column == nullptr || shifted;
  const std::string columns = concat("expected ", layout_->columns().size(), " columns");
  ++bad.reasons[is_of_row ? columns : fault_.kind()];
  if (bad.messages.size() >= BadRows::kMaxMessages) return;
  const std::string what = is_of_row ? concat(columns, ", got ", num_fields) : fault_.text();
  bad.messages.push_back(concat(text.place_of(line_of_block), ": ", what));
}

}  // namespace satrap::data
