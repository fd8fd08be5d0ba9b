#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "satrap/core/float_codec.h"
#include "satrap/core/ids.h"
#include "satrap/table/row.h"
#include "satrap/table/table.h"
#include "src/ps/gradient_merge.h"

namespace satrap::ps {

/// Copies weights into answers and sums gradients into rows, for one worker. Keeps its buffers.
class RowWork {
 public:
  /// Finds or creates the rows of the `keys` that `step` uses, ascending, and writes their weights,
  /// encoded.
  void read(table::Table& table,
            std::int64_t step,
            std::span<const Key> keys,          // [n]
            std::span<table::RowPointer> rows,  // [n] out
            FloatType encoding,
            std::byte* out);  // [n, dim] encoded, out

  /// As read, but a missing row is not created; its initial weights are written.
  void look_up(const table::Table& table,
               std::span<const Key> keys,
               FloatType encoding,
               std::byte* out);

  /// Leaves the rows used by a step unchanged.
  void skip(table::Table& table,
            std::int64_t num_shards,
            std::span<const Key> keys,                // [n] ascending
            std::span<const table::RowPointer> rows,  // [n]
            std::int64_t mark);

  /// Sums the gradients of equal keys in the order of `ranks` and applies the table's optimizer
  /// once to each row, with the learning rate of `step`. The rows get `mark` as their last step.
  void update(table::Table& table,
              std::int64_t num_shards,
              std::span<const RowGradients> ranks,
              std::int64_t step,
              std::int64_t mark);

 private:
  std::vector<table::RowPointer> found_;
  std::vector<std::byte> missing_;
  std::vector<float> floats_;  // weights of one block, or of the row that is updated
  GradientMerge merge_;
};

}  // namespace satrap::ps
