#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "satrap/data/row_block_source.h"
#include "src/data/rows/row_filler.h"
#include "src/data/rows/row_selection.h"
#include "src/data/text/block_parser.h"
#include "src/data/text/text_block.h"

namespace satrap::data {

/// The beginning of the line `lines` further on, or `end`.
inline const char* skip_lines(const char* p, const char* end, std::int64_t lines) {
  for (; lines > 0 && p < end; --lines) {
    p = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p))) + 1;
  }
  return p;
}

/// `selection` may be null.
template <class Parser>
RowChoice choice_of(Parser& parser,
                    const RowSelection* selection,
                    const char* line,
                    std::int64_t row) {
  if (selection == nullptr) return RowChoice::kRead;
  return selection->choice_of(row, [&](std::size_t place, std::string_view& text) {
    return parser.is_blank(line) ? FieldFound::kUnreadable
                                 : parser.find_selecting(line, place, text);
  });
}

/// BlockParser::parse for a format whose rows are lines. The parser has, of the line that begins at
/// `line` and ends with '\n':
///   is_blank(line): whether it holds no row at all;
///   find_selecting(line, place, text): what the line has of this column of Schema::selecting;
///   parse_row(line): puts it into the open row; the next line, or null if it is a bad row;
///   report(text, line, line_of_block, bad): why the row parsed last is bad;
///   kept_of(line, end): the texts of the kept columns of a bad row.
template <class Parser>
void parse_lines(Parser& parser,
                 const TextBlock& text,
                 const RowPass& pass,
                 RowFiller& filler,
                 RowBlock& rows,
                 BadRows& bad) {
  bad.clear();
  filler.begin(rows, text.num_lines);
  const char* p = text.text_begin();
  const char* const end = text.text_end();
  const std::int64_t end_row = pass.max_rows > 0
                                   ? std::min(text.first_row + text.num_lines, pass.max_rows)
                                   : text.first_row + text.num_lines;
  std::int64_t row = text.first_row;
  while (row < end_row) {
    if (row < pass.first_row) {
      const std::int64_t skipped = std::min(pass.first_row, end_row) - row;
      p = skip_lines(p, end, skipped);
      row += skipped;
      continue;
    }
    const std::int64_t run_end = row + std::min(pass.split.run(row), end_row - row);
    if (!pass.split.owns(row)) {
      p = skip_lines(p, end, run_end - row);
      row = run_end;
      continue;
    }
    for (; row < run_end; ++row) {
      const char* const line = p;
      const RowChoice choice = choice_of(parser, pass.selection.get(), line, row);
      if (choice != RowChoice::kRead) {
        bad.left_out += choice == RowChoice::kLeftOut ? 1 : 0;
        p = skip_lines(line, end, 1);
        continue;
      }
      if (parser.is_blank(line)) {
        p = skip_lines(line, end, 1);
        if (pass.keeps_every_line) filler.add_row_without_values(row);
        continue;
      }
      p = parser.parse_row(line);
      const auto position = [&] { return text.position_of(row - text.first_row); };
      if (p != nullptr && filler.is_wanted(position)) {
        filler.end_row(row);
        continue;
      }
      filler.drop_row();
      if (p != nullptr) {
        ++bad.left_out;
        continue;
      }
      parser.report(text, line, row - text.first_row, bad);
      bad.last_row = row;
      p = skip_lines(line, end, 1);
      if (pass.keeps_every_line) filler.add_row_without_values(row, parser.kept_of(line, p - 1));
    }
  }
  filler.finish();
}

}  // namespace satrap::data
