#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "satrap/data/row_block_source.h"
#include "src/data/rows/bad_row_policy.h"

namespace satrap::data {

/// Counts the rows of one pass over files. One thread at a time, but for stats().
class PassCounts {
 public:
  /// `total_bytes` of all files; 0: unknown.
  PassCounts(const RowPass& pass, std::int64_t total_bytes, std::shared_ptr<BadRowPolicy> bad_rows);

  /// As BadRowPolicy::add.
  void add(const BadRows& bad, std::int64_t num_good);
  void end_pass();

  /// The state of a pass that has read so many bytes, which have held so many rows, those of other
  /// passes included. Thread-safe.
  ReadStats stats(std::int64_t bytes, std::int64_t rows) const;

 private:
  const std::int64_t total_bytes_;
  const bool has_all_rows_;
  const std::int64_t max_rows_;
  const double part_share_;
  const std::shared_ptr<BadRowPolicy> bad_rows_;
  std::atomic<std::int64_t> num_good_{0}, num_others_{0};  // so far: bad or left out
};

}  // namespace satrap::data
