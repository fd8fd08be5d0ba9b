#pragma once

#include <cstdint>

#include "satrap/backend/operations.h"

/// The choice of the row of a set that is given up, on every device.
namespace satrap::backend {

/// The value of a frequency in `batch`, if it was last changed in batch `last`: under kLookahead
/// it is halved at each multiple of 2^halving_log2 batches in between.
constexpr std::uint32_t aged(EvictionPolicy policy,
                             std::uint32_t frequency,
                             std::uint32_t last,
                             const ResolveArguments& arguments) {
  if (policy != EvictionPolicy::kLookahead) return frequency;
  const std::uint32_t halvings =
      (arguments.batch >> arguments.halving_log2) - (last >> arguments.halving_log2);
  return halvings < 32 ? frequency >> halvings : 0;
}

/// Rows go in ascending order of this score, among equals the one needed longest ago. kLookahead:
/// rows that no known batch after this one needs, by frequency; above them the others, the farthest
/// next use first.
constexpr std::uint32_t score_of(EvictionPolicy policy,
                                 std::uint32_t frequency,
                                 std::uint32_t last_needed,
                                 std::uint32_t next_use,
                                 const ResolveArguments& arguments) {
  if (policy == EvictionPolicy::kLru) return 0;
  if (policy == EvictionPolicy::kLfu) return frequency;
  constexpr std::uint32_t kMost = 0x7FFFFFFFU;
  if (next_use > arguments.batch) {
    const std::uint32_t distance = next_use - arguments.batch;
    return 0xFFFFFFFFU - (distance < kMost ? distance : kMost);
  }
  const std::uint32_t worth = aged(policy, frequency, last_needed, arguments);
  return worth < kMost ? worth : kMost;
}

}  // namespace satrap::backend
