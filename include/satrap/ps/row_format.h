#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "satrap/core/hash.h"
#include "satrap/kernels/weight_type.h"
#include "satrap/ps/row.h"
#include "satrap/ps/table_spec.h"

namespace satrap::ps {

/// What is where in the rows of a table: the header, `dim` weights as they are stored, filled up to
/// whole floats, then the optimizer's state, always floats.
struct RowFormat {
  explicit RowFormat(const TableSpec& spec) : weights(spec.weights), dim(spec.dim) {}

  std::int64_t weight_bytes() const { return dim * bytes_of(weights); }
  std::int64_t state_offset() const {  // from the start of the row
    return static_cast<std::int64_t>(sizeof(RowHeader)) + (weight_bytes() + 3) / 4 * 4;
  }
  float* state_of(RowPointer row) const { return reinterpret_cast<float*>(row + state_offset()); }

  /// The weights as floats.
  void read_weights(const std::byte* row, float* out) const;  // [dim] out

  /// Stores weights; those of 16 bits are rounded by random numbers of (rounding_seed, key).
  void write_weights(const float* values, std::uint64_t rounding_seed, RowPointer row) const;

  /// Stores weights, rounded to nearest: of a new row.
  void write_nearest(const float* values, RowPointer row) const;

  /// Calls update(weights, state), both float*, which may change them. `scratch` [dim] holds
  /// weights that are not stored as floats meanwhile.
  template <class Update>
  void change(RowPointer row, std::uint64_t rounding_seed, float* scratch, Update&& update) const {
    if (weights == WeightType::kFp32) {
      update(weights_of(row), state_of(row));
      return;
    }
    read_weights(row, scratch);
    update(scratch, state_of(row));
    write_weights(scratch, rounding_seed, row);
  }

  WeightType weights;
  std::int64_t dim;
};

}  // namespace satrap::ps
