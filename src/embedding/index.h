#pragma once

#include <cstddef>
#include <cstdint>

namespace satrap::embedding {

/// Counts and places are signed; containers take unsigned ones.
inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace satrap::embedding
