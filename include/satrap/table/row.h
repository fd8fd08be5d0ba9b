#pragma once

#include <cstddef>
#include <cstdint>

#include "satrap/kernels/row_layout.h"

namespace satrap::table {

/// Set in the count of a row in a snapshot: an id that has no row yet, and its sightings.
inline constexpr std::uint32_t kCandidateFlag = 0x80000000;

/// Address of a row (RowLayout) in a table's memory, which never moves while its table lives; and
/// its parts. weights_of is for rows whose weights are stored as floats.
using RowPointer = std::byte*;
inline RowHeader& header_of(RowPointer row) { return *reinterpret_cast<RowHeader*>(row); }
inline float* weights_of(RowPointer row) {
  return reinterpret_cast<float*>(row + RowLayout::kWeightsOffset);
}
inline const float* weights_of(const std::byte* row) {
  return reinterpret_cast<const float*>(row + RowLayout::kWeightsOffset);
}

}  // namespace satrap::table
