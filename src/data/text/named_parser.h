#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/rows/canonical_text.h"
#include "src/data/rows/row_filler.h"
#include "src/data/text/block_parser.h"
#include "src/data/text/field_reader.h"
#include "src/data/text/named_columns.h"
#include "src/data/text/parse_lines.h"

namespace satrap::data {

/// Parses lines that name their values. `Fields` finds the values of a line:
///   Fields(schema, columns): throws Error(kInvalidConfig) for columns that the format cannot have;
///   static bool is_blank(line);
///   bool find(line, end, values): false if the line is none of the format; fault() then says why;
///   id_of(element): the id of an element of a list, without its weight.
/// The text at `end` is '\n', and TextBlock::kPadding bytes after it may be read.
template <class Fields>
class NamedParser : public BlockParser {
 public:
  NamedParser(const Schema& schema, const RowPass& pass)
      : schema_(schema),
        pass_(pass),
        columns_(schema),
        fields_(schema, columns_),
        row_(schema),
        reader_(schema, row_, false, pass.texts) {
    if (pass.selection == nullptr) return;
    for (const Schema::SelectingColumn& selecting : schema.selecting) {
      selecting_.emplace_back().name = selecting.column;
    }
  }
  NamedParser(const NamedParser&) = delete;
  NamedParser& operator=(const NamedParser&) = delete;

  void parse(const TextBlock& text, RowBlock& rows, BadRows& bad) override {
    end_ = text.text_end();
    found_line_ = nullptr;
    for (std::size_t i = 0; i < selecting_.size() && text.first_row == 0; ++i) {
      if (schema_.selecting[i].divides_rows) require_dividing(text, i);
    }
    parse_lines(*this, text, pass_, row_, rows, bad);
  }

  // For parse_lines, which describes them:
  bool is_blank(const char* line) const { return Fields::is_blank(line); }

  FieldFound find_selecting(const char* line, std::size_t place, std::string_view& text) {
    if (!find(line)) return FieldFound::kUnreadable;
    const LineValues::Value& value = found_.values[columns_.selecting[place]];
    if (!is_single(value)) return FieldFound::kUnreadable;
    if (value.kind == LineValues::Kind::kText) {
      text = value.text;
    } else if (is_list_of(value, 1)) {
      text = fields_.id_of(found_.elements[value.begin].text);
    } else {
      return FieldFound::kMissing;
    }
    return reader_.is_missing(text) ? FieldFound::kMissing : FieldFound::kText;
  }

  const char* parse_row(const char* line) {
    if (!find(line)) {
      fault_ = fields_.fault();
      return nullptr;
    }
    if (!can_select()) return nullptr;
    for (const NamedColumns::Use& use : columns_.uses) {
      if (!put(use, found_.values[use.place])) return nullptr;
    }
    if (reader_.check_row()) return next_;
    fault_ = reader_.fault();
    return nullptr;
  }

  std::vector<std::string> kept_of(const char* line, const char* /*end*/) {
    std::vector<std::string> texts(schema_.kept.size());
    if (texts.empty() || !find(line)) return texts;
    for (const NamedColumns::Use& use : columns_.uses) {
      if (use.consumer().kind != ColumnMap::Kind::kText) continue;
      texts[static_cast<std::size_t>(use.consumer().target)] = text_of(found_.values[use.place]);
    }
    return texts;
  }

  void report(const TextBlock& text,
              const char* /*line*/,
              std::int64_t line_of_block,
              BadRows& bad) {
    ++bad.count;
    ++bad.reasons[fault_.kind()];
    if (bad.messages.size() >= BadRows::kMaxMessages) return;
    bad.messages.push_back(concat(text.place_of(line_of_block), ": ", fault_.text()));
  }

 private:
  /// Finds the values of a line, once.
  bool find(const char* line) {
    if (line == found_line_) return is_found_;
    const char* const end =
        static_cast<const char*>(std::memchr(line, '\n', static_cast<std::size_t>(end_ - line)));
    found_line_ = line;
    next_ = end + 1;
    found_.clear(columns_.names.size());
    is_found_ = fields_.find(line, end, found_);
    return is_found_;
  }

  static bool is_list_of(const LineValues::Value& value, std::size_t size) {
    return value.kind == LineValues::Kind::kList && value.end - value.begin == size;
  }

  /// A value that has one text at most.
  static bool is_single(const LineValues::Value& value) {
    using Kind = LineValues::Kind;
    return value.kind == Kind::kText || value.kind == Kind::kMissing || is_list_of(value, 0) ||
           is_list_of(value, 1);
  }

  /// Throws an error if no row of the first block has a value in this column, which divides the
  /// rows: its name is wrong, and all rows would go by their numbers. All lines are looked at, so
  /// that it does not depend on ranks; in later blocks the column may be missing.
  void require_dividing(const TextBlock& text, std::size_t place) {
    std::int64_t num_rows = 0;
    for (const char* line = text.text_begin(); line < end_; line = skip_lines(line, end_, 1)) {
      if (is_blank(line) || !find(line)) continue;
      const LineValues::Value& value = found_.values[columns_.selecting[place]];
      if (value.kind != LineValues::Kind::kMissing && !is_list_of(value, 0)) return;
      ++num_rows;
    }
    if (num_rows == 0) return;  // bad rows alone, which are reported
    throw Error(ErrorCode::kInvalidConfig,
                concat(schema_.selecting[place].reader, ": none of the first ", num_rows,
                       " rows has a value for '", selecting_[place].name, "' (", text.place_of(0),
                       "); name a column that rows have, or write hash"));
  }

  /// A value that is no text is no reason to divide the row by its number: others of the same user
  /// may be in the other part.
  bool can_select() {
    for (std::size_t i = 0; i < selecting_.size(); ++i) {
      if (is_single(found_.values[columns_.selecting[i]])) continue;
      fault_ = {.column = &selecting_[i],
                .reason = schema_.selecting[i].divides_rows
                              ? "data.eval.by divides rows by one number or text: name another "
                                "column, or write hash"
                              : "data.train.where and data.eval.where compare one number or text",
                .field = {}};
      return false;
    }
    return true;
  }

  /// The text that is kept of a value: elements of a list are joined, and nothing is a fault.
  std::string_view text_of(const LineValues::Value& value) {
    if (value.kind != LineValues::Kind::kList) return value.text;
    joined_.clear();
    for (std::size_t i = value.begin; i < value.end; ++i) {
      if (i > value.begin) joined_ += '|';  // as in a sample of JSON or Parquet
      joined_ += found_.elements[i].text;
    }
    return joined_;
  }

  /// A value as the text of an id; valid until the next call.
  std::string_view id_text(std::string_view text, bool is_number) {
    return is_number && schema_.text.value_rule != 1 ? canonical_.of_number(text) : text;
  }

  bool put(const NamedColumns::Use& use, const LineValues::Value& value) {
    using Kind = LineValues::Kind;
    const ColumnMap::Consumer& consumer = use.consumer();
    bool is_put = false;
    if (consumer.kind == ColumnMap::Kind::kText) {
      is_put = reader_.read_value(text_of(value), value.kind == Kind::kMissing, use.column);
    } else if (value.kind == Kind::kText || value.kind == Kind::kMissing) {
      const bool is_of_ids = consumer.kind == ColumnMap::Kind::kInt;
      is_put = reader_.read_value(is_of_ids ? id_text(value.text, value.is_number) : value.text,
                                  value.kind == Kind::kMissing, use.column);
    } else if (value.kind == Kind::kList && consumer.kind == ColumnMap::Kind::kInt) {
      std::size_t at = value.begin;
      is_put = reader_.read_list(use.column, consumer.target, [&](std::string_view& element) {
        if (at == value.end) return false;
        element = id_text(found_.elements[at].text, found_.elements[at].is_number);
        ++at;
        return true;
      });
    } else {
      const bool is_list = value.kind == Kind::kList;
      fault_ = {.column = &use.column,
                .reason = is_list
                              ? "a list is read as ids alone"
                              : "expected a number, a text, true, false, null or a list of them",
                .field = value.text,
                .shows_field = !is_list};
      return false;
    }
    if (!is_put) fault_ = reader_.fault();
    return is_put;
  }

  const Schema& schema_;
  const RowPass pass_;
  const NamedColumns columns_;
  Fields fields_;
  RowFiller row_;
  FieldReader reader_;

  const char* end_ = nullptr;         // of the block
  const char* found_line_ = nullptr;  // whose values were found last
  const char* next_ = nullptr;        // the line after it
  bool is_found_ = false;
  LineValues found_;
  CanonicalText canonical_{'.'};
  std::string joined_;                        // a list that is kept as a text
  std::vector<ColumnMap::Column> selecting_;  // names alone; empty: the pass reads all rows
  RowFault fault_;                            // of the row that was parsed last, if it is a bad one
};

}  // namespace satrap::data
