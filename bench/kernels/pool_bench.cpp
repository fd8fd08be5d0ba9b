// Gather-pool and backward-update on rows far beyond the caches, compared with the rate at which
// the machine reads whole random rows of the same size: bytes of rows per second. Every kernel
// touches each row once, in an order that only prefetching can speed up.

#include <random>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include "satrap/kernels/pool.h"
#include "satrap/kernels/row_update.h"

namespace satrap {
namespace {

constexpr std::int64_t kMemoryBytes = std::int64_t{1} << 30;
constexpr std::int64_t kHeaderBytes = 16;
constexpr std::int64_t kIds = 1 << 16;
constexpr std::int64_t kBagSize = 8;

/// Rows of [header | dim weights | dim floats of state] on huge pages, as in a table.
struct Rows {
  explicit Rows(std::int64_t dim) : stride(kHeaderBytes + std::int64_t{2} * 4 * dim) {
    memory = static_cast<std::byte*>(
        mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(memory, kMemoryBytes, MADV_HUGEPAGE);
    auto* floats = reinterpret_cast<float*>(memory);
    for (std::int64_t i = 0; i < kMemoryBytes / 4; ++i) floats[i] = 1.0F;
    std::mt19937_64 random(1);
    for (std::int64_t i = 0; i < kIds * 16; ++i) {
      const std::uint64_t row = random() % static_cast<std::uint64_t>(kMemoryBytes / stride);
      pointers.push_back(memory + static_cast<std::int64_t>(row) * stride);
      unique_of.push_back(static_cast<std::int32_t>(i));
    }
    coefficient.assign(pointers.size(), 1.0F);
  }
  ~Rows() { munmap(memory, kMemoryBytes); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  std::int64_t stride;
  std::byte* memory;
  std::vector<std::byte*> pointers;
  std::vector<std::int32_t> unique_of;
  std::vector<float> coefficient;
};

/// The yardstick: `bytes` of each row summed into one vector, with the best prefetch distance.
void random_row_read(benchmark::State& state) {
  const std::int64_t dim = state.range(0);
  const std::int64_t distance = state.range(1);
  const Rows rows(dim);
  const std::int64_t bytes = 4 * dim;
  std::int64_t first = 0;
  std::vector<float> sum(static_cast<std::size_t>(dim));
  for (auto _ : state) {
    std::byte* const* pointers = rows.pointers.data() + first;
    with_dim(dim, [&](auto width) {
      weighted_sum(
          0, kIds - distance,
          [&](std::int64_t i) {
            prefetch_read(pointers[i + distance] + kHeaderBytes, bytes);
            return reinterpret_cast<const float*>(pointers[i] + kHeaderBytes);
          },
          [](std::int64_t) { return 1.0F; }, sum.data(), width);
    });
    benchmark::DoNotOptimize(sum.data());
    first = (first + kIds) % std::ssize(rows.pointers);
  }
  state.SetBytesProcessed(state.iterations() * kIds * bytes);
}
BENCHMARK(random_row_read)->ArgNames({"dim", "ahead"})->ArgsProduct({{16, 64}, {2, 4, 8, 16}});

void gather_pool(benchmark::State& state) {
  const std::int64_t dim = state.range(0);
  const Rows rows(dim);
  std::vector<std::int64_t> offsets;
  for (std::int64_t b = 0; b <= kIds / kBagSize; ++b) offsets.push_back(b * kBagSize);
  std::vector<float> out(static_cast<std::size_t>(kIds / kBagSize * dim));
  std::int64_t first = 0;
  for (auto _ : state) {
    const GatherSource source{rows.pointers.data() + first, kHeaderBytes, rows.unique_of.data(),
                              rows.coefficient.data()};
    with_dim(dim, [&](auto width) {
      pool_bags(source, offsets.data(), std::ssize(offsets) - 1, out.data(), dim, width);
    });
    benchmark::DoNotOptimize(out.data());
    first = (first + kIds) % std::ssize(rows.pointers);
  }
  state.SetBytesProcessed(state.iterations() * kIds * 4 * dim);
}
BENCHMARK(gather_pool)->ArgName("dim")->Arg(16)->Arg(64);

/// Each row has one occurrence; its gradient comes from an output that is in the cache. Counts the
/// bytes of weights and state read and written.
void backward_update(benchmark::State& state) {
  const std::int64_t dim = state.range(0);
  const Rows rows(dim);
  std::vector<float> grad(static_cast<std::size_t>(dim * 1024), 1e-3F), buffer(grad.size());
  std::vector<std::uint32_t> offset;
  for (std::int64_t i = 0; i < kIds; ++i) {
    offset.push_back(static_cast<std::uint32_t>(i % 1024 * dim));
  }
  const Occurrences occurrences{grad.data(), offset.data(), rows.coefficient.data(), kIds};
  std::vector<float> scratch(static_cast<std::size_t>(2 * dim));
  RowOptimizer optimizer;
  std::int64_t first = 0;
  for (auto _ : state) {
    const RowStep step(optimizer, 1.0, 1);
    std::byte* const* pointers = rows.pointers.data() + first;
    with_dim(dim, [&](auto width) {
      const std::int64_t ahead = gather_distance(width);
      for (std::int64_t u = 0; u < kIds; ++u) {
        prefetch_write(pointers[std::min(u + ahead, kIds - 1)], rows.stride);
        reduce_segment(occurrences, u, u + 1, buffer.data(), scratch.data(), width);
        auto* weights = reinterpret_cast<float*>(pointers[u] + kHeaderBytes);
        update_row<RowOptimizerType::kAdagrad>(step, weights, weights + dim, buffer.data(), width);
      }
    });
    first = (first + kIds) % std::ssize(rows.pointers);
  }
  state.SetBytesProcessed(state.iterations() * kIds * 2 * (rows.stride - kHeaderBytes));
}
BENCHMARK(backward_update)->ArgName("dim")->Arg(16)->Arg(64);

}  // namespace
}  // namespace satrap
