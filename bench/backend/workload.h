#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "satrap/backend/cache.h"
#include "satrap/backend/plan.h"
#include "satrap/backend/stream.h"
#include "satrap/core/hash.h"

/// Shared by the benchmarks of device operations: the axes, rotating batches, timing by events,
/// and bandwidth as a share of a copy measured in the same run.
namespace satrap::bench {

using backend::Memory;

/// Numbers of a benchmark's arguments.
struct Axes {
  std::int64_t dim = 64;
  FloatType weights = FloatType::kFp32;
  RowOptimizerType optimizer = RowOptimizerType::kAdagrad;
  std::int64_t zipf_percent = 0;
  std::int64_t pooling = 5;  // ids per bag
  std::int64_t hit_percent = 100;
  std::int64_t load_percent = 90;  // of the cache's slots that are occupied
};

/// The reference load has 8192 examples of 40 features with 5 ids: 1.64 M ids. Other poolings keep
/// that number. With ids drawn uniformly from 590 000, about 553 000 are distinct.
inline constexpr std::int64_t kRows = 8192;
inline constexpr std::int64_t kIds = kRows * 40 * 5;
inline constexpr std::int64_t kDistinctIds = 590'000;
inline constexpr int kBatches = 4;  // they take turns, so that none is in the L2 at its turn

/// The GPU; only if there is one.
inline backend::Device& device() {
  static const auto gpu = backend::make_cuda_device(0);
  return *gpu;
}

template <class T>
Memory on_device(const std::vector<T>& values) {
  Memory memory(device(), backend::Place::kDevice,
                static_cast<std::int64_t>(values.size() * sizeof(T)), "a benchmark's input");
  const backend::Stream stream(device());
  device().copy(memory.data(), values.data(), memory.bytes(), stream);
  stream.wait_until_idle();
  return memory;
}

/// Rank of a draw u in [0, 1) among n by a power law (the continuous one, inverted).
inline std::uint64_t zipf(double u, double exponent, double n) {
  const double rank =
      std::abs(exponent - 1.0) < 1e-9
          ? std::pow(n, u)
          : std::pow((std::pow(n, 1.0 - exponent) - 1.0) * u + 1.0, 1.0 / (1.0 - exponent));
  return static_cast<std::uint64_t>(std::min(rank, n)) - 1;
}

/// One batch on the device with its plan.
class Batch {
 public:
  Batch(const Axes& axes,
        const RowLayout& layout,
        const backend::PlanScratch& scratch,
        std::uint64_t seed)
      : plan_(device(), scratch, kIds) {
    const RandomStream random{hash64(seed)};
    std::vector<Key> keys(kIds);
    for (std::int64_t i = 0; i < kIds; ++i) {
      const auto n = static_cast<std::uint64_t>(i) * 2;
      const bool hit = random.below(n, 100) < static_cast<std::uint64_t>(axes.hit_percent);
      const double exponent = static_cast<double>(axes.zipf_percent) / 100;
      const std::uint64_t id = zipf(random.uniform_double(n + 1), exponent, kDistinctIds);
      // Ids beyond the distinct ones are in no cache.
      keys[static_cast<std::size_t>(i)] =
          make_key(TableId{}, hit ? id : kDistinctIds * (1 + seed) + id);
    }
    const std::int64_t num_bags = kIds / axes.pooling;
    const std::int64_t num_features = num_bags / kRows;
    std::vector<std::int64_t> offsets;
    for (std::int64_t b = 0; b <= num_features * kRows; ++b) offsets.push_back(b * axes.pooling);
    std::vector<backend::BagFeature> features;
    for (std::int64_t f = 0; f < num_features; ++f) {
      features.push_back({f * kRows, f * layout.padded_dim, Pooling::kSum, 1});
    }
    keys.resize(static_cast<std::size_t>(offsets.back()));
    keys_ = on_device(keys);
    offsets_ = on_device(offsets);
    features_ = on_device(features);
    bags.keys = reinterpret_cast<const Key*>(keys_.data());
    bags.offsets = reinterpret_cast<const std::int64_t*>(offsets_.data());
    bags.features = reinterpret_cast<const backend::BagFeature*>(features_.data());
    bags.num_ids = offsets.back();
    bags.num_examples = kRows;
    bags.num_features = num_features;
    bags.num_vectors = num_features * kRows;
    bags.row_stride = num_features * layout.padded_dim;
    vectors = Memory(device(), backend::Place::kDevice, bags.num_examples * bags.row_stride * 2,
                     "an output");
    std::vector<std::uint16_t> gradients(static_cast<std::size_t>(vectors.bytes() / 2));
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const float gradient = 2.0F * random.uniform(2 * kIds + i) - 1.0F;
      gradients[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(gradient) >> 16);
    }
    const backend::Stream stream(device());
    device().copy(vectors.data(), gradients.data(), vectors.bytes(), stream);
    stream.wait_until_idle();
  }
  backend::PlanView view() const { return plan_.view(bags.num_ids); }
  const backend::MissView& misses() const { return plan_.misses(); }

  backend::Bags bags;
  Memory vectors;  // output, or its gradient: bf16

 private:
  Memory keys_, offsets_, features_;
  backend::Plan plan_;
};

template <class T>
T download_one(const T* from) {
  T value;
  const backend::Stream stream(device());
  device().copy(&value, from, sizeof(T), stream);
  stream.wait_until_idle();
  return value;
}

/// A cache with the ids [0, kDistinctIds) and others up to its load, and batches for it.
struct Workload {
  explicit Workload(const Axes& a)
      : axes(a), optimizer(optimizer_of(a)), layout(layout_of(a)), size(size_of(a)) {
    cache = std::make_unique<backend::Cache>(device(), layout, size, backend::EvictionPolicy::kLru,
                                             stream);
    fill_rows();
    prefill();
    for (int b = 0; b < kBatches; ++b) {
      batches.push_back(std::make_unique<Batch>(a, layout, scratch, static_cast<std::uint64_t>(b)));
    }
  }

  void build(Batch& batch) const {
    device().build_plan(batch.bags, size.num_sets, layout.padded_dim, batch.view(), stream);
  }
  void resolve(Batch& batch, std::uint32_t number) const {
    device().resolve(cache->view(), batch.view(),
                     {.batch = number, .completed = number - 1, .max_overflow = size.overflow_rows},
                     batch.misses(), stream);
  }
  /// Plans and slots of all batches, once.
  void prepare() {
    for (auto& batch : batches) {
      build(*batch);
      resolve(*batch, next++);
    }
    stream.wait_until_idle();
  }
  std::int64_t num_unique(const Batch& batch) const {
    return download_one(batch.view().counts).unique;
  }

  const Axes axes;
  const RowOptimizer optimizer;
  const RowLayout layout;
  const backend::CacheSize size;
  const backend::Stream stream{device()};
  const backend::PlanScratch scratch{device(), kIds, layout};
  std::unique_ptr<backend::Cache> cache;
  std::vector<std::unique_ptr<Batch>> batches;
  std::uint32_t next = 1;

 private:
  static RowOptimizer optimizer_of(const Axes& axes) {
    RowOptimizer optimizer;
    optimizer.type = axes.optimizer;
    return optimizer;
  }
  static RowLayout layout_of(const Axes& axes) {
    return RowLayout::of(axes.dim, axes.weights, optimizer_of(axes).type);
  }
  static backend::CacheSize size_of(const Axes& axes) {
    // Four times what a batch needs: rows far beyond the L2.
    const std::int64_t slots = 4 * kDistinctIds * 100 / axes.load_percent;
    return {slots / backend::CacheSize::kWays, kIds};
  }

  /// Random weights and states, as in training: the root of 0 takes a slower path than others, and
  /// zeros draw less power.
  void fill_rows() const {
    const std::int64_t pattern_rows = std::min<std::int64_t>(4096, size.total_slots());
    const RandomStream random{hash64(1)};
    std::uint64_t n = 0;
    std::vector<std::byte> row(static_cast<std::size_t>(layout.row_bytes));
    std::vector<std::byte> pattern(static_cast<std::size_t>(pattern_rows * layout.device_stride));
    std::vector<float> weights(static_cast<std::size_t>(layout.dim));
    for (std::int64_t r = 0; r < pattern_rows; ++r) {
      for (float& weight : weights) weight = 0.02F * random.uniform(n++) - 0.01F;
      layout.write_nearest(weights.data(), row.data());
      float* state = layout.state_of(row.data());
      for (std::int64_t i = 0; i < layout.state_floats; ++i) state[i] = random.uniform(n++);
      layout.to_device(row.data(), pattern.data() + r * layout.device_stride);
    }
    for (std::int64_t first = 0; first < size.total_slots(); first += pattern_rows) {
      const std::int64_t count = std::min(pattern_rows, size.total_slots() - first);
      device().copy(cache->view().rows + first * layout.device_stride, pattern.data(),
                    count * layout.device_stride, stream);
    }
    stream.wait_until_idle();
  }

  void prefill() {
    const std::int64_t wanted = size.num_slots() * axes.load_percent / 100;
    const backend::Plan plan(device(), scratch, kIds);
    for (std::int64_t begin = wanted; begin > 0; begin -= std::min(begin, kIds)) {
      const std::int64_t n = std::min(begin, kIds);
      std::vector<Key> keys;
      for (std::int64_t i = begin - n; i < begin; ++i) {
        // The ids of the batches come last, so that nothing evicts them.
        const auto id = static_cast<std::uint64_t>(i);
        keys.push_back(make_key(TableId{}, id < kDistinctIds ? id : id + 1'000'000'000));
      }
      const std::vector<std::int64_t> offsets{0, n};
      const std::vector<backend::BagFeature> features{{0, 0, Pooling::kSum, 1}};
      const Memory keys_on_device = on_device(keys), offsets_on_device = on_device(offsets),
                   features_on_device = on_device(features);
      backend::Bags bags;
      bags.keys = reinterpret_cast<const Key*>(keys_on_device.data());
      bags.offsets = reinterpret_cast<const std::int64_t*>(offsets_on_device.data());
      bags.features = reinterpret_cast<const backend::BagFeature*>(features_on_device.data());
      bags.num_ids = n;
      bags.num_examples = bags.num_features = bags.num_vectors = 1;
      bags.row_stride = layout.padded_dim;
      device().build_plan(bags, size.num_sets, layout.padded_dim, plan.view(n), stream);
      device().resolve(cache->view(), plan.view(n),
                       {.batch = next, .completed = next - 1, .max_overflow = size.overflow_rows},
                       plan.misses(), stream);
      ++next;
      stream.wait_until_idle();
    }
  }
};

/// Bytes per second of a copy within the device, read and write counted, best of ten of 1 GiB.
inline double copy_rate() {
  static const double rate = [] {
    constexpr std::int64_t kBytes = std::int64_t{1} << 30;
    const Memory from(device(), backend::Place::kDevice, kBytes, "a copy"),
        to(device(), backend::Place::kDevice, kBytes, "a copy");
    const backend::Stream stream(device());
    double best = 1e9;
    for (int i = 0; i < 10; ++i) {
      backend::Event start(device(), true), stop(device(), true);
      start.record(stream);
      device().copy(to.data(), from.data(), kBytes, stream);
      stop.record(stream);
      stop.wait_until_reached();
      best = std::min(best, backend::Event::milliseconds_between(start, stop));
    }
    return 2.0 * kBytes / (best * 1e-3);
  }();
  return rate;
}

/// Times of iterations, as counters of the benchmark, in microseconds per batch.
class Times {
 public:
  void add(benchmark::State& state, double seconds) {
    state.SetIterationTime(seconds);
    microseconds_.push_back(seconds * 1e6);
  }
  void report(benchmark::State& state, double host_microseconds) {
    std::ranges::sort(microseconds_);
    const auto quantile = [&](double share) {
      return microseconds_[static_cast<std::size_t>(share *
                                                    static_cast<double>(microseconds_.size() - 1))];
    };
    state.counters["p10_us"] = quantile(0.1);
    state.counters["median_us"] = quantile(0.5);
    state.counters["p90_us"] = quantile(0.9);
    state.counters["host_us"] = host_microseconds;
  }

 private:
  std::vector<double> microseconds_;
};

/// Times `work(batch)` of all batches of the workload back to back, after a turn that does not
/// count; beside it the time that the host takes to queue the work, which must be less.
template <class Work>
void time_batches(benchmark::State& state, Workload& workload, Work work) {
  const auto num_batches = static_cast<double>(workload.batches.size());
  Times times;
  std::chrono::duration<double> host{};
  backend::Event start(device(), true), stop(device(), true);
  for (auto& batch : workload.batches) work(*batch);
  workload.stream.wait_until_idle();
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    start.record(workload.stream);
    for (auto& batch : workload.batches) work(*batch);
    stop.record(workload.stream);
    host += std::chrono::steady_clock::now() - begin;
    stop.wait_until_reached();
    times.add(state, backend::Event::milliseconds_between(start, stop) * 1e-3 / num_batches);
  }
  times.report(state, host.count() * 1e6 / static_cast<double>(state.iterations()) / num_batches);
}

/// The same one by one, if `before(batch)` must precede each and is not to be counted. The device
/// is busy with that while the host queues the work.
template <class Before, class Work>
void time_batches(benchmark::State& state, Workload& workload, Before before, Work work) {
  Times times;
  std::chrono::duration<double> host{};
  backend::Event start(device(), true), stop(device(), true);
  before(*workload.batches[0]);
  work(*workload.batches[0]);
  std::size_t turn = 0;
  for (auto _ : state) {
    Batch& batch = *workload.batches[turn++ % workload.batches.size()];
    before(batch);
    const auto begin = std::chrono::steady_clock::now();
    start.record(workload.stream);
    work(batch);
    stop.record(workload.stream);
    host += std::chrono::steady_clock::now() - begin;
    stop.wait_until_reached();
    times.add(state, backend::Event::milliseconds_between(start, stop) * 1e-3);
  }
  times.report(state, host.count() * 1e6 / static_cast<double>(state.iterations()));
}

/// Reports bytes per batch in the median time as GB/s and as a share of the copy. Compulsory: each
/// distinct row once; algorithmic: once per occurrence.
inline void report(benchmark::State& state, double compulsory_bytes, double algorithmic_bytes) {
  const double seconds = state.counters["median_us"].value * 1e-6;
  state.counters["compulsory_GBps"] = compulsory_bytes / seconds * 1e-9;
  state.counters["algorithmic_GBps"] = algorithmic_bytes / seconds * 1e-9;
  state.counters["compulsory_share"] = compulsory_bytes / seconds / copy_rate();
  state.counters["algorithmic_share"] = algorithmic_bytes / seconds / copy_rate();
  state.counters["copy_GBps"] = copy_rate() * 1e-9;
}

/// Returns true and skips the benchmark if there is no device.
inline bool skip_without_device(benchmark::State& state) {
  const std::string reason = backend::why_no_cuda();
  if (!reason.empty()) state.SkipWithError(("no GPU: " + reason).c_str());
  return !reason.empty();
}

/// Arguments in the order dim, weight type, optimizer, zipf %, pooling, hit %, load %.
inline Axes axes_of(const benchmark::State& state) {
  Axes axes;
  axes.dim = state.range(0);
  axes.weights = static_cast<FloatType>(state.range(1));
  axes.optimizer = static_cast<RowOptimizerType>(state.range(2));
  axes.zipf_percent = state.range(3);
  axes.pooling = state.range(4);
  axes.hit_percent = state.range(5);
  axes.load_percent = state.range(6);
  return axes;
}

/// The reference load, and each axis varied alone: all combinations would take days.
inline void apply_axes(benchmark::internal::Benchmark* benchmark, bool optimizers, bool caches) {
  benchmark->ArgNames({"dim", "w", "opt", "zipf", "pool", "hit", "load"});
  // Quantiles are of the iterations: each repetition would build its workload anew.
  benchmark->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(100);
  const auto add = [&](const std::vector<std::int64_t>& args) { benchmark->Args(args); };
  for (const std::int64_t dim : {8, 16, 32, 64, 128, 256}) add({dim, 0, 1, 0, 5, 100, 90});
  for (const std::int64_t type : {1, 2}) add({64, type, 1, 0, 5, 100, 90});
  for (const std::int64_t zipf : {105, 120}) add({64, 0, 1, zipf, 5, 100, 90});
  for (const std::int64_t pooling : {1, 50}) add({64, 0, 1, 0, pooling, 100, 90});
  if (optimizers) {
    for (const std::int64_t optimizer : {0, 2, 3, 4}) add({64, 0, optimizer, 0, 5, 100, 90});
  }
  if (caches) {
    for (const std::int64_t hit : {95, 80}) add({64, 0, 1, 0, 5, hit, 90});
    for (const std::int64_t load : {50, 100}) add({64, 0, 1, 0, 5, 95, load});
  }
}

}  // namespace satrap::bench
