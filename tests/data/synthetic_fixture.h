#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "satrap/core/auc.h"
#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/ids.h"
#include "satrap/data/synthetic.h"

namespace satrap::data {

/// Four features and three numbers, small enough to count everything.
inline SyntheticConfig small_config() {
  SyntheticConfig config;
  config.rows = 20'000;
  config.cardinalities = {10, 100, 1000, 20};
  config.num_numeric = 3;
  config.numeric_missing = {0.0, 0.25, 1.0};
  return config;
}

struct Rows {
  RowBlock block;
  std::vector<float> probabilities;
};

inline Rows generate(const SyntheticConfig& config, std::int64_t first, std::int64_t count) {
  Rows rows;
  SyntheticGenerator(config).generate(first, count, rows.block, &rows.probabilities);
  return rows;
}

/// Appends all values of a row, bit for bit.
inline void append_row(const RowBlock& block, std::size_t row, std::vector<std::uint64_t>& out) {
  out.push_back(static_cast<std::uint64_t>(block.labels[row]));
  for (const auto& column : block.numeric) {
    out.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(column[row])));
  }
  for (const auto& bags : block.bags) {
    out.push_back(0xBA6);
    out.insert(out.end(), bags.ids.begin() + bags.offsets[row],
               bags.ids.begin() + bags.offsets[row + 1]);
  }
}

inline std::vector<std::uint64_t> content(const Rows& rows) {
  std::vector<std::uint64_t> all;
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows.block.num_rows); ++r) {
    append_row(rows.block, r, all);
    all.push_back(std::bit_cast<std::uint32_t>(rows.probabilities[r]));
  }
  return all;
}

inline double mean(const std::vector<float>& values) {
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

inline std::map<std::uint64_t, std::int64_t> count_ids(const RowBlock::Bags& bags) {
  std::map<std::uint64_t, std::int64_t> counts;
  for (const std::uint64_t id : bags.ids) ++counts[id];
  return counts;
}

// ---------------------------------------------------------------------- shape and reproducibility

}  // namespace satrap::data
