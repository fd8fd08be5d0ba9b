#pragma once

#include <cstdint>

#include "satrap/backend/device.h"
#include "satrap/backend/views.h"

namespace satrap::backend {

/// Primitives from CUB on the device and from the standard library on the executor. `scratch` has
/// at least prims_scratch_bytes(n) bytes; n is below 2^31. Runs and selections need no separate
/// primitives: they follow from one scan over several counts.
std::int64_t prims_scratch_bytes(std::int64_t max_items);

/// Keeps the order of those that are equal.
void sort_pairs(void* scratch,
                std::int64_t scratch_bytes,
                const std::uint32_t* keys,     // [n]
                std::uint32_t* sorted_keys,    // [n] out
                const std::uint32_t* values,   // [n]
                std::uint32_t* sorted_values,  // [n] out
                std::int64_t n,
                StreamRef stream);

/// How many keys and sets begin up to each occurrence, itself included (HeadAt).
void count_heads(void* scratch,
                 std::int64_t scratch_bytes,
                 const std::uint64_t* tags,  // [n] in order
                 std::int64_t num_sets,
                 Count2* counts,  // [n] out
                 std::int64_t n,
                 StreamRef stream);

/// Replaces every element by the sum of all up to and including it.
void inclusive_sum(void* scratch,
                   std::int64_t scratch_bytes,
                   Count4* counts,
                   std::int64_t n,
                   StreamRef stream);

}  // namespace satrap::backend
