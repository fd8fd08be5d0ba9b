#include <algorithm>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda_runtime.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "cuda/backend/heads.h"
#include "cuda/backend/launch.h"
#include "cuda/backend/prims.h"

namespace satrap::backend {

namespace {

struct Add {
  __device__ Count4 operator()(Count4 x, Count4 y) const {
    return {x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d};
  }
};

/// Both counts in one number, which CUB has a faster scan for; no sum reaches 2^32.
struct PackedHeadAt {
  HeadAt heads;
  __device__ std::uint64_t operator()(int j) const {
    const Count2 head = heads(j);
    return head.a + (std::uint64_t{head.b} << 32);
  }
};

// With counts of 32 bits its kernels do not compute in 64.
cudaError_t sum_heads(void* scratch,
                      std::size_t& bytes,
                      const HeadAt& heads,
                      Count2* counts,
                      std::int64_t n,
                      cudaStream_t stream) {
  const auto packed =
      thrust::make_transform_iterator(thrust::make_counting_iterator(0), PackedHeadAt{heads});
  return cub::DeviceScan::InclusiveSum(scratch, bytes, packed,
                                       reinterpret_cast<std::uint64_t*>(counts),
                                       static_cast<int>(n), stream);
}

// In place is allowed: CUB's scan reads a whole tile before it writes it.
cudaError_t sum_counts(void* scratch,
                       std::size_t& bytes,
                       Count4* counts,
                       std::int64_t n,
                       cudaStream_t stream) {
  return cub::DeviceScan::InclusiveScan(scratch, bytes, counts, counts, Add{}, static_cast<int>(n),
                                        stream);
}

cudaError_t sort(void* scratch,
                 std::size_t& bytes,
                 const std::uint32_t* keys,
                 std::uint32_t* sorted_keys,
                 const std::uint32_t* values,
                 std::uint32_t* sorted_values,
                 std::int64_t n,
                 cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys, values, sorted_values,
                                         static_cast<int>(n), 0, 32, stream);
}

}  // namespace

std::int64_t prims_scratch_bytes(std::int64_t max_items) {
  std::size_t of_sort = 0, of_heads = 0, of_counts = 0;
  check(sort(nullptr, of_sort, nullptr, nullptr, nullptr, nullptr, max_items, nullptr),
        "DeviceRadixSort");
  check(sum_heads(nullptr, of_heads, {}, nullptr, max_items, nullptr), "DeviceScan");
  check(sum_counts(nullptr, of_counts, nullptr, max_items, nullptr), "DeviceScan");
  return static_cast<std::int64_t>(std::max({of_sort, of_heads, of_counts}));
}

void sort_pairs(void* scratch,
                std::int64_t scratch_bytes,
                const std::uint32_t* keys,
                std::uint32_t* sorted_keys,
                const std::uint32_t* values,
                std::uint32_t* sorted_values,
                std::int64_t n,
                StreamRef stream) {
  auto bytes = static_cast<std::size_t>(scratch_bytes);
  check(sort(scratch, bytes, keys, sorted_keys, values, sorted_values, n, native(stream)),
        "DeviceRadixSort");
}

void count_heads(void* scratch,
                 std::int64_t scratch_bytes,
                 const std::uint64_t* tags,
                 std::int64_t num_sets,
                 Count2* counts,
                 std::int64_t n,
                 StreamRef stream) {
  auto bytes = static_cast<std::size_t>(scratch_bytes);
  check(sum_heads(scratch, bytes, {tags, num_sets}, counts, n, native(stream)), "DeviceScan");
}

void inclusive_sum(void* scratch,
                   std::int64_t scratch_bytes,
                   Count4* counts,
                   std::int64_t n,
                   StreamRef stream) {
  auto bytes = static_cast<std::size_t>(scratch_bytes);
  check(sum_counts(scratch, bytes, counts, n, native(stream)), "DeviceScan");
}

}  // namespace satrap::backend
