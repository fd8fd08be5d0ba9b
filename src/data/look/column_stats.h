#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include "satrap/data/config.h"
#include "satrap/data/id_texts.h"
#include "satrap/data/row_block.h"
#include "src/data/rows/distinct_estimate.h"

namespace satrap::data {

/// Shows a string as its text, if that is known, and its hash.
std::string show_id(std::uint64_t id, const FeatureConfig& feature, const IdTexts& texts);

/// Milliseconds since 1970 as a time in UTC; "-": NaN.
std::string show_time(double ms);

struct NumberStats {
  std::int64_t count = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double mean = 0;
  double sum_squares = 0;  // of differences to the mean (Welford 1962)

  void add(double x);

  /// A line of the table of numbers, of a column or of an input.
  std::string line(std::string_view name, std::size_t width, std::int64_t num_rows) const;
  std::string line_of_times(std::string_view name, std::size_t width, std::int64_t num_rows) const;

 private:
  std::string missing(std::string_view name, std::size_t width, std::int64_t num_rows) const;
};

/// The ids of a column.
class IdStats {
 public:
  void add(const RowBlock::Bags& bags, std::int64_t row);

  /// A line of the table of features.
  std::string line(std::string_view name,
                   std::size_t width,
                   std::int64_t num_rows,
                   const FeatureConfig& feature,
                   const IdTexts& texts) const;

 private:
  std::string most_frequent(const FeatureConfig& feature, const IdTexts& texts) const;

  std::int64_t num_empty_ = 0;
  std::int64_t num_ids_ = 0;
  bool exact_ = true;
  std::unordered_map<std::uint64_t, std::int64_t> counts_;
  DistinctEstimate estimate_;
};

}  // namespace satrap::data
