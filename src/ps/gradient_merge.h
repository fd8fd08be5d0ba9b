#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "satrap/core/float_codec.h"
#include "satrap/core/ids.h"
#include "satrap/table/row.h"

namespace satrap::ps {

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// One rank's gradients of a step for rows of one table; keys ascend.
struct RowGradients {
  std::span<const Key> keys;                // [n]
  std::span<const table::RowPointer> rows;  // [n]
  FloatType encoding = FloatType::kFp32;
  const std::byte* values = nullptr;  // [n, dim] encoded
};

/// Merges the gradients of several ranks into one list of distinct keys: gradients of equal keys
/// are summed in the order of the ranks. Works in blocks, each of rows of one partition; keeps its
/// memory.
class GradientMerge {
 public:
  void start(std::span<const RowGradients> ranks, std::int64_t dim, std::int64_t num_shards);

  /// Finds the next rows, their partition, and their gradients. Returns false if there are no more.
  bool next_block();
  std::int64_t partition() const { return partition_; }
  std::span<const table::RowPointer> rows() const { return std::span(rows_).first(size_); }
  const float* gradient(std::int64_t row) const { return sums_[static_cast<std::size_t>(row)]; }

 private:
  static constexpr std::size_t kBlock = 64;

  std::optional<Key> least_key() const;
  void add_row(Key key);
  const float* values_at(const RowGradients& rank, std::size_t at, float* decoded) const;

  std::span<const RowGradients> ranks_;
  std::int64_t dim_ = 0, num_shards_ = 1, partition_ = 0;
  std::size_t size_ = 0;                 // of the block
  std::vector<std::size_t> next_;        // [num_ranks]
  std::vector<table::RowPointer> rows_;  // [kBlock]
  std::vector<const float*> sums_;       // [kBlock]: in the received bytes, or in memory_
  std::vector<float> memory_;            // [kBlock + 1, dim]
};

}  // namespace satrap::ps
