#pragma once

#include <cstddef>
#include <cstdint>

#include "satrap/core/ids.h"

namespace satrap::ps {

/// A row in memory: this header, `dim` weights, then the optimizer's state, contiguous, at a fixed
/// stride per table (a multiple of 16 bytes); see RowFormat. A row never moves while its table
/// lives.
struct RowHeader {
  Key key;
  std::uint32_t last_step;  // step of the last update; 0: still as initialised
  std::uint32_t count;      // number of updates (saturating)
};
static_assert(sizeof(RowHeader) == 16);
inline constexpr std::int64_t kMaxStep = 0xFFFFFFFF;  // that last_step can hold
inline constexpr std::uint32_t kMaxCount = 0x7FFFFFFF;

/// With the count of a row in a snapshot: an id that has no row yet, and its sightings.
inline constexpr std::uint32_t kCandidateFlag = 0x80000000;

/// Address of a row, and its parts. weights_of: of rows whose weights are stored as floats.
using RowPointer = std::byte*;
inline RowHeader& header_of(RowPointer row) { return *reinterpret_cast<RowHeader*>(row); }
inline float* weights_of(RowPointer row) {
  return reinterpret_cast<float*>(row + sizeof(RowHeader));
}
inline const float* weights_of(const std::byte* row) {
  return reinterpret_cast<const float*>(row + sizeof(RowHeader));
}

}  // namespace satrap::ps
