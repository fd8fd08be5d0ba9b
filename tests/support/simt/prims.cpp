// Replaces cuda/backend/prims.cu: the same primitives, with the standard library.
#include "cuda/backend/prims.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda/backend/check.h"
#include "cuda/backend/heads.h"

namespace satrap::backend {

namespace {

/// CUB looks at the last error after each of its launches, whoever has made it.
void check_last_error() { check(cudaPeekAtLastError(), "CUB"); }

}  // namespace

std::int64_t prims_scratch_bytes(std::int64_t /*max_items*/) { return 1; }

void sort_pairs(void* /*scratch*/,
                std::int64_t /*scratch_bytes*/,
                const std::uint32_t* keys,
                std::uint32_t* sorted_keys,
                const std::uint32_t* values,
                std::uint32_t* sorted_values,
                std::int64_t n,
                StreamRef stream) {
  check_last_error();
  const auto sort = [=] {
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::int64_t i) { return std::pair(keys[i], i); });
    for (std::int64_t i = 0; i < n; ++i) {
      sorted_keys[i] = keys[order[static_cast<std::size_t>(i)]];
      sorted_values[i] = values[order[static_cast<std::size_t>(i)]];
    }
  };
  simt::enqueue(native(stream), simt::Work{.run = sort, .name = "sort_pairs"});
}

void count_heads(void*,
                 std::int64_t,
                 const std::uint64_t* tags,
                 std::int64_t num_sets,
                 Count2* counts,
                 std::int64_t n,
                 StreamRef stream) {
  check_last_error();
  const auto count = [=] {
    Count2 sum{0, 0};
    for (std::int64_t j = 0; j < n; ++j) {
      const Count2 head = HeadAt{tags, num_sets}(j);
      counts[j] = sum = {sum.a + head.a, sum.b + head.b};
    }
  };
  simt::enqueue(native(stream), simt::Work{.run = count, .name = "count_heads"});
}

void inclusive_sum(void*, std::int64_t, Count4* counts, std::int64_t n, StreamRef stream) {
  check_last_error();
  const auto sum = [=] {
    std::inclusive_scan(counts, counts + n, counts, [](Count4 x, Count4 y) {
      return Count4{x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d};
    });
  };
  simt::enqueue(native(stream), simt::Work{.run = sum, .name = "inclusive_sum"});
}

}  // namespace satrap::backend
