#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/support/ptx/instruction.h"
#include "tests/support/ptx/memory.h"

namespace ptx {

/// The arguments of a launch: the bytes of each parameter.
using Arguments = std::vector<std::vector<std::byte>>;

/// What launches of a kernel have executed. A warp instruction is one that lanes of a warp with the
/// same program counter execute at once.
struct Executed {
  std::int64_t launches = 0, lane_instructions = 0;
  // Only in lock step:
  std::int64_t warp_instructions = 0;
  std::vector<std::int64_t> by_instruction;  // warp instructions, by index into the code
  Sectors sectors;                           // of global memory, the distinct ones of each launch
};

/// Runs a kernel on grid_size blocks of block_size lanes, a multiple of 32. Seed 0 runs block after
/// block and each warp in lock step: the lanes whose instruction is the first in the code go on.
/// Other seeds run up to three blocks at a time and let any lane of them go on for a few
/// instructions; a device may mix them as finely.
///
/// Throws simt::Fault, which names the kernel, block, warp, lane, line and instruction, for
/// addresses that are misaligned or outside of every allocation, shared array or parameter, for
/// races between warps, for collectives whose lanes disagree or wait for one that has ended, and
/// for lanes that wait for ever.
Executed run(const Kernel& kernel,
             std::span<const Range> shared_arrays,
             unsigned grid_size,
             unsigned block_size,
             const Arguments& arguments,
             std::uint64_t seed);

}  // namespace ptx
