#include <algorithm>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda_runtime.h>

#include "cuda/backend/launch.h"
#include "cuda/backend/prims.h"

namespace satrap::backend {

namespace {

struct Add {
  __device__ Count2 operator()(Count2 x, Count2 y) const { return {x.a + y.a, x.b + y.b}; }
  __device__ Count4 operator()(Count4 x, Count4 y) const {
    return {x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d};
  }
};

// In place is allowed: CUB's scan reads a whole tile before it writes it. With counts of 32 bits
// its kernels do not compute in 64.
template <class Count>
void scan(void* scratch, std::size_t bytes, Count* counts, std::int64_t n, cudaStream_t stream) {
  check(cub::DeviceScan::InclusiveScan(scratch, bytes, counts, counts, Add{}, static_cast<int>(n),
                                       stream),
        "DeviceScan");
}

template <class Count>
std::size_t scan_bytes(std::int64_t n) {
  std::size_t bytes = 0;
  Count* none = nullptr;
  check(cub::DeviceScan::InclusiveScan(nullptr, bytes, none, none, Add{}, static_cast<int>(n)),
        "DeviceScan");
  return bytes;
}

std::size_t sort_bytes(std::int64_t n) {
  std::size_t bytes = 0;
  const std::uint64_t* keys = nullptr;
  const std::uint32_t* values = nullptr;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, const_cast<std::uint64_t*>(keys),
                                        values, const_cast<std::uint32_t*>(values),
                                        static_cast<int>(n)),
        "DeviceRadixSort");
  return bytes;
}

}  // namespace

std::int64_t prims_scratch_bytes(std::int64_t max_items) {
  return static_cast<std::int64_t>(std::max(
      {sort_bytes(max_items), scan_bytes<Count2>(max_items), scan_bytes<Count4>(max_items)}));
}

void sort_pairs(void* scratch,
                std::int64_t scratch_bytes,
                const std::uint64_t* keys,
                std::uint64_t* sorted_keys,
                const std::uint32_t* values,
                std::uint32_t* sorted_values,
                std::int64_t n,
                int first_bit,
                StreamRef stream) {
  auto bytes = static_cast<std::size_t>(scratch_bytes);
  check(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys, values, sorted_values,
                                        static_cast<int>(n), first_bit, 64, native(stream)),
        "DeviceRadixSort");
}

void inclusive_sum(void* scratch,
                   std::int64_t scratch_bytes,
                   Count2* counts,
                   std::int64_t n,
                   StreamRef stream) {
  scan(scratch, static_cast<std::size_t>(scratch_bytes), counts, n, native(stream));
}

void inclusive_sum(void* scratch,
                   std::int64_t scratch_bytes,
                   Count4* counts,
                   std::int64_t n,
                   StreamRef stream) {
  scan(scratch, static_cast<std::size_t>(scratch_bytes), counts, n, native(stream));
}

}  // namespace satrap::backend
