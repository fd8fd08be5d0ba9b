#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

/// Runs CUDA kernels on the host. Every lane of a block is a fiber; lanes wait for each other at
/// warp collectives and barriers; between two of them, or two atomics, a lane runs without
/// interruption. A seed decides which lane continues and the order of the blocks, which run one
/// after the other. A launch runs on the calling thread; threads take turns (turns.h).
///
/// Reported as Fault: collectives whose mask does not name the caller, differs between the lanes or
/// names a lane that has ended; barriers that a lane of the block does not reach, or that are not
/// the same barrier; traps; writes beyond dynamic shared memory, by guard zones around it.
/// AddressSanitizer reports use of static shared memory beyond its size. Before each block, dynamic
/// shared memory is filled with a pattern that is NaN as a float. Work of two streams that touches
/// the same byte without an order: races.h.
///
/// Not modelled: weak memory order (fences do nothing), lock-step execution, timing, concurrent
/// blocks. Kernels that spin on another block are not supported.
namespace simt {

/// A kernel broke a rule. The message names kernel, block, lane and place.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr Dim3(unsigned size_x = 1, unsigned size_y = 1, unsigned size_z = 1)
      : x(size_x), y(size_y), z(size_z) {}
  constexpr unsigned count() const { return x * y * z; }
};

/// The arguments of a launch.
struct Launch {
  Dim3 grid, block;
  std::size_t shared_bytes = 0;
  std::string name = "kernel";
};

inline constexpr int kWarpSize = 32;
inline constexpr std::uint32_t kFullMask = ~std::uint32_t{0};

/// Sets the seed of later schedules; every launch continues the sequence. Seed 0 runs lanes and
/// blocks in order.
void set_seed(std::uint64_t seed);

/// Runs `kernel` once per lane of the grid; throws Fault.
void launch(const Launch& launch, const std::function<void()>& kernel);

/// Runs a kernel in place of its host function; `arguments` are the bytes of each.
using Interpreter = std::function<void(const Launch& launch,
                                       const void* host_function,
                                       const std::vector<std::vector<std::byte>>& arguments)>;

/// Sets what runs the kernels of later launches; an empty one: their host functions.
void set_interpreter(Interpreter interpreter);
const Interpreter& interpreter();

/// A number below `bound` for other schedulers (streams), from the same seed; 0 for seed 0.
std::uint64_t draw_stream(std::uint64_t bound);

/// Number of context switches so far, in all launches.
std::uint64_t num_switches();

// ------------------------------------------------------------ called by kernels, through the
// headers

/// The position of the running lane.
struct Place {
  Dim3 thread, block, block_dim, grid_dim;
  int lane = 0;  // within its warp
};
const Place& place();

enum class Collective { kSyncWarp, kShuffle, kBallot, kMatch, kReduce };

/// Waits until all lanes in `mask` have given their value; returns the 32 values, undefined for
/// lanes outside the mask. Valid until the lane's next collective.
std::span<const std::uint64_t, kWarpSize> exchange(Collective kind,
                                                   std::uint32_t mask,
                                                   std::uint64_t value,
                                                   std::source_location where);

/// Waits for all lanes of the block. Returns the number of lanes whose `predicate` is true.
int barrier(bool predicate, std::source_location where);

/// A point where another lane may run: before and after every atomic.
void preempt();

/// The block's dynamic shared memory.
std::byte* dynamic_shared();

/// Ends the launch with a Fault.
[[noreturn]] void fail(const char* what, std::source_location where);

}  // namespace simt
