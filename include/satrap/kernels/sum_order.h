#pragma once

#include <cstdint>

namespace satrap {

/// The order in which the gradients of a key's occurrences in a batch are added, on every device:
/// consecutive chunks of kSumChunk, counted from the key's first occurrence, are each summed in
/// order by fused multiply-adds from 0. Up to kSumChunk chunks are then added in order. If there
/// are more, every kSumChunk consecutive chunks are added in order to a group, and the groups are
/// added in order. So a hot key's sum can be divided among threads, a sum does not depend on the
/// other keys of the batch, and a key with at most kSumChunk occurrences is summed in plain order.
inline constexpr std::int64_t kSumChunk = 64;

}  // namespace satrap
