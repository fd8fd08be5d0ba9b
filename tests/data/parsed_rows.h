#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/rows/row_selection.h"
#include "src/data/text/text_rows.h"

namespace satrap::data {

/// One row, easy to compare and to print. A missing number is the text "-".
struct ParsedRow {
  std::int64_t number = 0;
  float label = 0;
  std::vector<std::string> numeric;
  std::vector<std::vector<std::uint64_t>> bags;
  std::vector<std::vector<float>> weights;
  friend bool operator==(const ParsedRow&, const ParsedRow&) = default;
};

/// To the last digit.
inline std::string show(double value) { return std::isnan(value) ? "-" : fmt::format("{}", value); }

inline void append_rows(const RowBlock& block, std::vector<ParsedRow>& rows) {
  for (std::int64_t r = 0; r < block.num_rows; ++r) {
    const auto at = static_cast<std::size_t>(r);
    ParsedRow& row = rows.emplace_back();
    row.number = block.row_number(r);
    row.label = block.labels[at];
    for (const std::vector<double>& column : block.numeric) row.numeric.push_back(show(column[at]));
    for (const RowBlock::Bags& bags : block.bags) {
      const auto begin = static_cast<std::ptrdiff_t>(bags.offsets[at]);
      const auto end = static_cast<std::ptrdiff_t>(bags.offsets[at + 1]);
      row.bags.emplace_back(bags.ids.begin() + begin, bags.ids.begin() + end);
      row.weights.emplace_back();
      if (!bags.weights.empty()) {
        row.weights.back().assign(bags.weights.begin() + begin, bags.weights.begin() + end);
      }
    }
  }
}

inline std::vector<ParsedRow> all_rows(RowBlockSource& source) {
  std::vector<ParsedRow> rows;
  RowBlock block;
  while (source.next(block)) append_rows(block, rows);
  return rows;
}

/// The result of reading text files in one pass. The default of max_bad_rows would refuse most of
/// the small files of the tests, so it means no limit here.
struct ReadResult {
  std::vector<ParsedRow> rows;
  std::vector<std::string> bad;  // what was reported of bad rows, without their share
  std::int64_t num_bad = 0;
};

inline ReadResult read_text(const DataConfig& config,
                            const RowPass& pass = {},
                            const LineCutter::Limits& limits = {}) {
  Schema schema = resolve_schema(config);
  if (pass.selection) schema.selecting = pass.selection->columns();
  ReadResult result;
  const auto policy = std::make_shared<BadRowPolicy>(
      config.on_bad_row == OnBadRow::kStop,
      config.max_bad_rows == DataConfig().max_bad_rows ? BadRowLimit() : config.bad_row_limit(),
      [&](const std::string& line) {
        if (line.find("could not be read; the first") == std::string::npos)
          result.bad.push_back(line);
      });
  const FileList files = list_files(config.train.path);
  TextRows rows(schema, files, pass, policy, limits, nullptr, format_of(config.format, files));
  result.rows = all_rows(rows);
  result.num_bad = policy->count();
  return result;
}

}  // namespace satrap::data
