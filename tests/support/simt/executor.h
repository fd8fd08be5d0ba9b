#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>

/// Runs CUDA kernels on the host. Every lane of a block is a fiber; warp collectives and barriers
/// are rendezvous at which lanes wait for each other; between two of them, or two atomics, a lane
/// runs undisturbed. Which lane goes on is drawn from a seed, as is the order of the blocks, which
/// run one after the other. Everything happens on the calling thread.
///
/// Reported as Fault: collectives whose mask does not name the caller, differs between the lanes or
/// names a lane that has ended; barriers of which a lane of the block stays away, or that are not
/// the same barrier; traps; writes beyond dynamic shared memory, by guard zones around it. Use of
/// static shared memory beyond its size is AddressSanitizer's to report. Dynamic shared memory is
/// filled with a pattern that is NaN as a float before each block.
///
/// Not modelled: weak memory order (fences do nothing), lock-step execution, timing, concurrent
/// blocks. A kernel that spins on another block is not for this executor, nor for us.
namespace simt {

/// A kernel did what it must not. The message names kernel, block, lane and place.
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

/// What a launch is told.
struct Launch {
  Dim3 grid, block;
  std::size_t shared_bytes = 0;
  std::string name = "kernel";
};

inline constexpr int kWarpSize = 32;
inline constexpr std::uint32_t kFullMask = ~std::uint32_t{0};

/// The seed of the schedules from here on; every launch draws on. Seed 0 takes lanes and blocks in
/// their order.
void set_seed(std::uint64_t seed);

/// Runs `kernel` once per lane of the grid; throws Fault.
void launch(const Launch& launch, const std::function<void()>& kernel);

/// A number below `bound` for whoever else schedules (streams), from the same seed; 0 for seed 0.
std::uint64_t draw_stream(std::uint64_t bound);

/// Context switches so far, of all launches.
std::uint64_t num_switches();

// ------------------------------------------------------------ called by kernels, through the
// headers

/// Where the running lane is.
struct Place {
  Dim3 thread, block, block_dim, grid_dim;
  int lane = 0;  // within its warp
};
const Place& place();

enum class Collective { kSyncWarp, kShuffle, kBallot, kMatch, kReduce };

/// Waits for all lanes named in `mask` to bring their value; returns the 32 values, those of lanes
/// outside of the mask being undefined. Valid until the lane's next collective.
std::span<const std::uint64_t, kWarpSize> exchange(Collective kind,
                                                   std::uint32_t mask,
                                                   std::uint64_t value,
                                                   std::source_location where);

/// Waits for all lanes of the block. Returns for how many of them `predicate` was true.
int barrier(bool predicate, std::source_location where);

/// A point at which another lane may go on: before and after every atomic.
void preempt();

/// The block's dynamic shared memory.
std::byte* dynamic_shared();

/// Ends the launch with a Fault.
[[noreturn]] void fail(const char* what, std::source_location where);

}  // namespace simt
