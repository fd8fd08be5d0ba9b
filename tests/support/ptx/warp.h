#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/ptx/instruction.h"
#include "tests/support/ptx/memory.h"

namespace ptx {

inline constexpr int kLanes = 32;

/// One thread of a block.
struct Lane {
  int pc = 0;  // index of the next instruction
  bool has_ended = false;
  bool waits = false;      // in the collective at pc
  std::uint32_t mask = 0;  // that it gave there
  std::vector<std::uint64_t> registers;

  bool can_run() const { return !has_ended && !waits; }
};

struct Warp {
  std::array<Lane, kLanes> lanes;
  int num_alive = kLanes;
};

struct Block {
  unsigned index = 0;
  std::vector<Warp> warps;
  std::vector<std::byte> shared;
  Accesses shared_accesses;
  int num_alive = 0;  // lanes
};

/// What a lane has given to a collective.
struct Contribution {
  std::uint64_t value = 0;
  std::uint32_t source = 0, clamp = 0;  // of shfl: operands b and c
};

/// What shfl.sync, vote.sync and redux.sync give to a lane: `predicate` is shfl's second
/// destination.
struct Exchanged {
  std::uint64_t value = 0;
  bool predicate = false;
  int source_lane = -1;  // of shfl: the lane that was read
};
Exchanged exchange(const Instruction& instruction,
                   const std::array<Contribution, kLanes>& given,
                   std::uint32_t mask,
                   int lane);

}  // namespace ptx
