#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "bench/backend/batch.h"
#include "satrap/backend/cache.h"

/// A cache in the state of training, and batches that take turns with it.
namespace satrap::bench {

inline constexpr int kBatches = 4;  // they take turns, so that none is in the L2 at its turn

template <class T>
T download_one(const T* from) {
  T value;
  const backend::Stream stream(device());
  device().copy(&value, from, sizeof(T), stream);
  stream.wait_until_idle();
  return value;
}

/// A cache with the ids [0, load().distinct()) and others up to its load, and batches for it.
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
    device().build_plan({batch.bags, size.num_sets, layout.padded_dim, batch.view()}, stream);
  }
  backend::ResolveArguments arguments(std::uint32_t number) const {
    return {.batch = number,
            .completed = number - 1,
            .overflow_slots = reinterpret_cast<const std::int32_t*>(overflow_slots.data()),
            .max_overflow = size.overflow_rows};
  }
  void resolve(Batch& batch, std::uint32_t number) const {
    device().resolve({cache->view(), batch.view(), arguments(number), batch.misses()}, stream);
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
  const backend::PlanScratch scratch{device(), load().ids(), layout};
  const Memory overflow_slots{on_device(slots_from(size.num_slots(), size.overflow_rows))};
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
    const std::int64_t slots = axes.cache_gb == 0
                                   ? 4 * load().distinct() * 100 / axes.load_percent
                                   : axes.cache_gb * 1'000'000'000 / layout_of(axes).device_stride;
    return {slots / backend::CacheSize::kWays, load().ids()};
  }

  static std::vector<std::int32_t> slots_from(std::int64_t first, std::int64_t count) {
    std::vector<std::int32_t> slots(static_cast<std::size_t>(count));
    std::iota(slots.begin(), slots.end(), static_cast<std::int32_t>(first));
    return slots;
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
    device().copy(cache->view().rows, pattern.data(), std::ssize(pattern), stream);
    repeat(cache->view().rows, std::ssize(pattern), size.total_slots() * layout.device_stride,
           stream);
  }

  void prefill() {
    const std::int64_t wanted = size.num_slots() * axes.load_percent / 100;
    const backend::DevicePlan plan(device(), scratch, load().ids());
    for (std::int64_t begin = wanted; begin > 0; begin -= std::min(begin, load().ids())) {
      const std::int64_t n = std::min(begin, load().ids());
      std::vector<Key> keys;
      for (std::int64_t i = begin - n; i < begin; ++i) {
        // The ids of the batches come last, so that nothing evicts them.
        const std::int64_t id = i < load().distinct() ? i : i + 1'000'000'000;
        keys.push_back(make_key(TableId{}, static_cast<std::uint64_t>(id)));
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
      device().build_plan({bags, size.num_sets, layout.padded_dim, plan.view(n)}, stream);
      device().resolve({cache->view(), plan.view(n), arguments(next), plan.misses()}, stream);
      ++next;
      stream.wait_until_idle();
    }
  }
};

}  // namespace satrap::bench
