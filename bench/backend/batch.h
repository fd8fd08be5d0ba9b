#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/backend/axes.h"
#include "bench/backend/zipf.h"
#include "satrap/backend/device_plan.h"
#include "satrap/backend/stream.h"
#include "satrap/core/hash.h"

/// Memory of the device with a batch of the load in it.
namespace satrap::bench {

using backend::Memory;

/// The GPU; only if there is one.
inline backend::Device& device() {
  static const auto gpu = backend::make_cuda_device(0);
  return *gpu;
}

/// Repeats the first `pattern` bytes of device memory up to `bytes`.
inline void repeat(std::byte* memory,
                   std::int64_t pattern,
                   std::int64_t bytes,
                   const backend::Stream& stream) {
  for (std::int64_t done = pattern; done < bytes; done *= 2) {
    device().copy(memory + done, memory, std::min(done, bytes - done), stream);
  }
  stream.wait_until_idle();
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

/// One batch on the device with its plan.
class Batch {
 public:
  Batch(const Axes& axes,
        const RowLayout& layout,
        const backend::PlanScratch& scratch,
        std::uint64_t seed)
      : plan_(device(), scratch, load().ids()) {
    const RandomStream random{hash64(seed)};
    const auto distinct = static_cast<std::uint64_t>(load().distinct());
    const double exponent = static_cast<double>(axes.zipf_percent) / 100;
    std::vector<Key> keys(static_cast<std::size_t>(load().ids()));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool hit = random.below(i * 2, 100) < static_cast<std::uint64_t>(axes.hit_percent);
      const std::uint64_t id =
          zipf(random.uniform_double(i * 2 + 1), exponent, static_cast<double>(distinct));
      // Ids beyond the distinct ones are in no cache.
      keys[i] = make_key(TableId{}, hit ? id : distinct * (1 + seed) + id);
    }
    // Where bags are long there are too few for all examples, or even for one.
    const std::int64_t ids_per_bag = std::min(axes.pooling, load().ids());
    const std::int64_t num_bags = load().ids() / ids_per_bag;
    const std::int64_t num_examples = std::min(load().rows, num_bags);
    const std::int64_t num_features = num_bags / num_examples;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> long_bags;
    for (std::int64_t b = 0; b < num_features * num_examples; ++b) {
      offsets.push_back((b + 1) * ids_per_bag);
      if (ids_per_bag > backend::kMaxShortBag) long_bags.push_back(static_cast<std::int32_t>(b));
    }
    std::vector<backend::BagFeature> features;
    for (std::int64_t f = 0; f < num_features; ++f) {
      features.push_back({f * num_examples, f * layout.padded_dim, Pooling::kSum, 1});
    }
    keys.resize(static_cast<std::size_t>(offsets.back()));
    keys_ = on_device(keys);
    offsets_ = on_device(offsets);
    features_ = on_device(features);
    long_bags_ = on_device(long_bags);
    bags.keys = reinterpret_cast<const Key*>(keys_.data());
    bags.offsets = reinterpret_cast<const std::int64_t*>(offsets_.data());
    bags.features = reinterpret_cast<const backend::BagFeature*>(features_.data());
    bags.long_bags = reinterpret_cast<const std::int32_t*>(long_bags_.data());
    bags.num_ids = offsets.back();
    bags.num_examples = num_examples;
    bags.num_features = num_features;
    bags.num_vectors = num_features * num_examples;
    bags.num_long_bags = std::ssize(long_bags);
    bags.row_stride = num_features * layout.padded_dim;
    vectors = Memory(device(), backend::Place::kDevice, bags.num_examples * bags.row_stride * 2,
                     "an output");
    // A million random gradients, repeated: zeros draw less power.
    const std::int64_t count = std::min<std::int64_t>(1 << 20, vectors.bytes() / 2);
    std::vector<std::uint16_t> gradients(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const float gradient =
          2.0F * random.uniform(2 * static_cast<std::uint64_t>(load().ids()) + i) - 1.0F;
      gradients[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(gradient) >> 16);
    }
    const backend::Stream stream(device());
    device().copy(vectors.data(), gradients.data(), count * 2, stream);
    repeat(vectors.data(), count * 2, vectors.bytes(), stream);
  }
  backend::PlanView view() const { return plan_.view(bags.num_ids); }
  const backend::MissView& misses() const { return plan_.misses(); }

  backend::Bags bags;
  Memory vectors;  // output, or its gradient: bf16

 private:
  Memory keys_, offsets_, features_, long_bags_;
  backend::DevicePlan plan_;
};

}  // namespace satrap::bench
