#pragma once

#include <cstddef>
#include <cstdint>

#include "satrap/core/ids.h"

namespace satrap::ps {

/// A row in memory: this header, `dim` weights, then the optimizer's state, all floats, contiguous,
/// at a fixed stride per table (a multiple of 16 bytes). A row never moves while its table lives.
struct RowHeader {
  Key key;
  std::uint32_t last_step;  // step of the last update; 0: still as initialised
  std::uint32_t count;      // number of updates (saturating)
};
static_assert(sizeof(RowHeader) == 16);
inline constexpr std::int64_t kMaxStep = 0xFFFFFFFF;  // that last_step can hold

/// Address of a row, and its parts.
using RowPointer = std::byte*;
inline RowHeader& header_of(RowPointer row) { return *reinterpret_cast<RowHeader*>(row); }
inline float* weights_of(RowPointer row) {
  return reinterpret_cast<float*>(row + sizeof(RowHeader));
}
inline const float* weights_of(const std::byte* row) {
  return reinterpret_cast<const float*>(row + sizeof(RowHeader));
}

}  // namespace satrap::ps
