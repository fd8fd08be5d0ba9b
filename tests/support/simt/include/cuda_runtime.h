// Replaces NVIDIA's header of this name when kernels are compiled for the SIMT executor: the part
// of CUDA C++ that satrap uses, implemented on tests/support/simt/executor.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>
#include <vector>

#include <cuda_runtime_api.h>
#include <vector_types.h>

#include "tests/support/simt/executor.h"
#include "tests/support/simt/symbols.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
// Kernels write `static __shared__ T x[n];` and `extern __shared__ ...`: blocks run one at a time.
#define __shared__

// What the executor itself keeps is of no interest to races.h.
#define SIMT_UNWATCHED __attribute__((no_sanitize("thread")))

namespace simt {
/// threadIdx and the like are read from the running lane. They are not macros, because launch
/// configurations have members of these names.
template <Dim3 Place::* kMember, unsigned Dim3::* kComponent>
struct Component {
  SIMT_UNWATCHED operator unsigned() const { return (place().*kMember).*kComponent; }
};
template <Dim3 Place::* kMember>
struct Index {
  Component<kMember, &Dim3::x> x;
  Component<kMember, &Dim3::y> y;
  Component<kMember, &Dim3::z> z;
};
}  // namespace simt
inline constexpr simt::Index<&simt::Place::thread> threadIdx{};
inline constexpr simt::Index<&simt::Place::block> blockIdx{};
inline constexpr simt::Index<&simt::Place::block_dim> blockDim{};
inline constexpr simt::Index<&simt::Place::grid_dim> gridDim{};

namespace simt {

template <class T>
std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// The value of lane `source`, or the caller's own if `source` is outside its segment of `width`
/// lanes.
template <class T>
SIMT_UNWATCHED T shuffle(std::uint32_t mask, T value, int source, std::source_location where) {
  const auto values = exchange(Collective::kShuffle, mask, to_bits(value), where);
  if ((mask >> source & 1U) == 0) fail("__shfl_sync reads a lane that is not in its mask", where);
  return from_bits<T>(values[static_cast<std::size_t>(source)]);
}

template <class T, class Combine>
SIMT_UNWATCHED T reduce(std::uint32_t mask, T value, Combine combine, std::source_location where) {
  const auto values = exchange(Collective::kReduce, mask, to_bits(value), where);
  bool first = true;
  T result{};
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    const T other = from_bits<T>(values[static_cast<std::size_t>(lane)]);
    result = first ? other : combine(result, other);
    first = false;
  }
  return result;
}

}  // namespace simt

#define SIMT_HERE std::source_location where = std::source_location::current()

// ------------------------------------------------------------------------------ barriers and
// fences

inline void __syncthreads(SIMT_HERE) { simt::barrier(false, where); }
inline int __syncthreads_count(int predicate, SIMT_HERE) {
  return simt::barrier(predicate != 0, where);
}
inline int __syncthreads_or(int predicate, SIMT_HERE) {
  return simt::barrier(predicate != 0, where) != 0 ? 1 : 0;
}
inline void __syncwarp(std::uint32_t mask = simt::kFullMask, SIMT_HERE) {
  simt::exchange(simt::Collective::kSyncWarp, mask, 0, where);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

// ------------------------------------------------------------------------------ warp collectives

template <class T>
T __shfl_sync(std::uint32_t mask, T value, int source, int width = 32, SIMT_HERE) {
  const int lane = simt::place().lane;
  return simt::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)), where);
}
template <class T>
T __shfl_xor_sync(std::uint32_t mask, T value, int lane_mask, int width = 32, SIMT_HERE) {
  const int lane = simt::place().lane;
  const int source = lane ^ lane_mask;
  // A lane may read one of an earlier segment, but not one of a later segment.
  return simt::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, where);
}
template <class T>
T __shfl_up_sync(std::uint32_t mask, T value, unsigned delta, int width = 32, SIMT_HERE) {
  const int lane = simt::place().lane;
  const int source = lane - static_cast<int>(delta);
  return simt::shuffle(mask, value, source < (lane & ~(width - 1)) ? lane : source, where);
}
template <class T>
T __shfl_down_sync(std::uint32_t mask, T value, unsigned delta, int width = 32, SIMT_HERE) {
  const int lane = simt::place().lane;
  const int source = lane + static_cast<int>(delta);
  return simt::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, where);
}

SIMT_UNWATCHED inline std::uint32_t __ballot_sync(std::uint32_t mask, int predicate, SIMT_HERE) {
  const auto values =
      simt::exchange(simt::Collective::kBallot, mask, predicate != 0 ? 1U : 0U, where);
  std::uint32_t ballot = 0;
  for (unsigned lane = 0; lane < simt::kWarpSize; ++lane) {
    ballot |= std::uint32_t{values[lane] != 0} << lane;
  }
  return ballot & mask;
}
inline int __any_sync(std::uint32_t mask, int predicate, SIMT_HERE) {
  return __ballot_sync(mask, predicate, where) != 0 ? 1 : 0;
}
inline int __all_sync(std::uint32_t mask, int predicate, SIMT_HERE) {
  return __ballot_sync(mask, predicate, where) == mask ? 1 : 0;
}
template <class T>
SIMT_UNWATCHED std::uint32_t __match_any_sync(std::uint32_t mask, T value, SIMT_HERE) {
  const std::uint64_t mine = simt::to_bits(value);
  const auto values = simt::exchange(simt::Collective::kMatch, mask, mine, where);
  std::uint32_t match = 0;
  for (unsigned lane = 0; lane < simt::kWarpSize; ++lane) {
    match |= std::uint32_t{values[lane] == mine} << lane;
  }
  return match & mask;
}

template <class T>
T __reduce_add_sync(std::uint32_t mask, T value, SIMT_HERE) {
  return simt::reduce(mask, value, [](T a, T b) { return static_cast<T>(a + b); }, where);
}
template <class T>
T __reduce_min_sync(std::uint32_t mask, T value, SIMT_HERE) {
  return simt::reduce(mask, value, [](T a, T b) { return b < a ? b : a; }, where);
}
template <class T>
T __reduce_max_sync(std::uint32_t mask, T value, SIMT_HERE) {
  return simt::reduce(mask, value, [](T a, T b) { return a < b ? b : a; }, where);
}
inline std::uint32_t __reduce_or_sync(std::uint32_t mask, std::uint32_t value, SIMT_HERE) {
  return simt::reduce(mask, value, [](std::uint32_t a, std::uint32_t b) { return a | b; }, where);
}
inline std::uint32_t __reduce_and_sync(std::uint32_t mask, std::uint32_t value, SIMT_HERE) {
  return simt::reduce(mask, value, [](std::uint32_t a, std::uint32_t b) { return a & b; }, where);
}

// ------------------------------------------------------------------------------ atomics

namespace simt {
/// Another lane may run between a kernel's read of memory and its atomic, and right after it.
template <class T, class Change>
T atomic(T* address, Change change) {
  preempt();
  const T old = *address;
  *address = change(old);
  preempt();
  return old;
}
}  // namespace simt

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return simt::atomic(address, [&](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return simt::atomic(address, [&](T old) { return value < old ? value : old; });
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return simt::atomic(address, [&](T old) { return old < value ? value : old; });
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return simt::atomic(address, [&](T old) { return static_cast<T>(old | value); });
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return simt::atomic(address, [&](T) { return value; });
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
  return simt::atomic(address, [&](T old) { return old == expected ? desired : old; });
}

// ------------------------------------------------------------------------------ arithmetic

inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
template <class T>
T __ldg(const T* address) {
  return *address;
}

[[noreturn]] inline void __trap(SIMT_HERE) { simt::fail("__trap", where); }

#undef SIMT_HERE
#undef SIMT_UNWATCHED

// ------------------------------------------------------------------------------ launches

namespace simt {
template <class T>
std::vector<std::byte> bytes_of(const T& argument) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&argument);
  return {bytes, bytes + sizeof(argument)};
}
}  // namespace simt

/// Copies the arguments, as CUDA does, and queues the kernel on its stream.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config,
                               void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  if (const cudaError_t error = simt::check_launch(config->stream)) return error;
  const simt::Launch launch{config->gridDim, config->blockDim, config->dynamicSmemBytes,
                            simt::name_of_kernel(reinterpret_cast<const void*>(kernel))};
  const auto run = [launch, kernel, ... args = static_cast<Parameters>(arguments)] {
    if (simt::interpreter()) {
      simt::interpreter()(launch, reinterpret_cast<const void*>(kernel), {simt::bytes_of(args)...});
    } else {
      simt::launch(launch, [&] { kernel(args...); });
    }
  };
  simt::enqueue(config->stream, simt::Work{.run = run, .name = launch.name});
  return cudaSuccess;
}
