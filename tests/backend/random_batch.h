#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "satrap/backend/operations.h"
#include "satrap/core/hash.h"
#include "tests/support/device/device.h"

namespace satrap::testing {

/// A sequence of random numbers.
class Random {
 public:
  explicit Random(std::uint64_t seed) : stream_{hash64(seed)} {}
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(stream_.below(n_++, static_cast<std::uint64_t>(bound)));
  }
  float uniform(float low, float high) { return low + (high - low) * stream_.uniform(n_++); }

 private:
  RandomStream stream_;
  std::uint64_t n_ = 0;
};

/// A batch on the host, and the places of its vectors.
struct HostBatch {
  std::int64_t num_examples = 0;
  std::int64_t dim = 4;
  std::vector<Pooling> poolings;          // per feature
  std::vector<std::int64_t> max_lengths;  // per feature; 1 unless a sequence
  std::vector<std::int64_t> offsets{0};   // [num_features * num_examples + 1]
  std::vector<Key> keys;
  std::vector<float> weights;  // empty: all 1

  std::int64_t num_ids() const { return static_cast<std::int64_t>(keys.size()); }
  std::int64_t num_features() const { return static_cast<std::int64_t>(poolings.size()); }
  std::int64_t padded_dim() const { return (dim + 3) / 4 * 4; }
  std::int64_t row_stride() const {
    std::int64_t width = 4;  // some elements that belong to no vector
    for (const std::int64_t length : max_lengths) width += length * padded_dim();
    return width;
  }
  std::vector<backend::BagFeature> features() const {
    std::vector<backend::BagFeature> features;
    std::int64_t vector = 0, column = 4;
    for (std::size_t f = 0; f < poolings.size(); ++f) {
      features.push_back({vector, column, poolings[f], static_cast<std::int32_t>(max_lengths[f])});
      vector += num_examples * max_lengths[f];
      column += max_lengths[f] * padded_dim();
    }
    return features;
  }
  std::vector<std::int32_t> long_bags() const {
    std::vector<std::int32_t> longs;
    for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
      if (offsets[b + 1] - offsets[b] > backend::kMaxShortBag) {
        longs.push_back(static_cast<std::int32_t>(b));
      }
    }
    return longs;
  }
  std::int64_t num_vectors() const {
    std::int64_t count = 0;
    for (const std::int64_t length : max_lengths) count += num_examples * length;
    return count;
  }
};

struct BatchShape {
  std::int64_t num_examples = 5;
  std::int64_t max_bag = 6;        // ids per bag: 0 to this
  std::int64_t distinct_ids = 40;  // ids are drawn from as many
  std::int64_t dim = 8;
  bool weighted = false;
  std::vector<Pooling> poolings{Pooling::kSum};
  std::int64_t max_length = 3;  // of sequences
  std::int64_t num_tables = 2;
};

inline HostBatch random_batch(const BatchShape& shape, std::uint64_t seed) {
  Random random(seed);
  HostBatch batch;
  batch.num_examples = shape.num_examples;
  batch.dim = shape.dim;
  batch.poolings = shape.poolings;
  for (const Pooling pooling : shape.poolings) {
    batch.max_lengths.push_back(pooling == Pooling::kSequence ? shape.max_length : 1);
    for (std::int64_t row = 0; row < shape.num_examples; ++row) {
      const std::int64_t length = random.below(shape.max_bag + 1);
      for (std::int64_t i = 0; i < length; ++i) {
        // Half of the ids are among the first few, so some occur many times.
        const std::int64_t range = random.below(2) == 0
                                       ? shape.distinct_ids
                                       : std::max<std::int64_t>(1, shape.distinct_ids / 20);
        const auto table = static_cast<TableId>(random.below(shape.num_tables));
        batch.keys.push_back(make_key(table, static_cast<std::uint64_t>(random.below(range))));
        if (shape.weighted) batch.weights.push_back(random.uniform(-1.0F, 2.0F));
      }
      batch.offsets.push_back(batch.num_ids());
    }
  }
  return batch;
}

/// Bags of these lengths, one feature after the other, with ids of 700 per table.
inline HostBatch batch_of_lengths(const std::vector<Pooling>& poolings,
                                  const std::vector<std::vector<std::int64_t>>& lengths,
                                  std::int64_t dim,
                                  bool weighted,
                                  std::uint64_t seed) {
  Random random(seed);
  HostBatch batch;
  batch.num_examples = std::ssize(lengths[0]);
  batch.dim = dim;
  batch.poolings = poolings;
  for (std::size_t f = 0; f < poolings.size(); ++f) {
    batch.max_lengths.push_back(poolings[f] == Pooling::kSequence ? 3 : 1);
    for (const std::int64_t length : lengths[f]) {
      for (std::int64_t i = 0; i < length; ++i) {
        const auto table = static_cast<TableId>(f % 3);
        batch.keys.push_back(make_key(table, static_cast<std::uint64_t>(random.below(700))));
        if (weighted) batch.weights.push_back(random.uniform(-1.0F, 2.0F));
      }
      batch.offsets.push_back(batch.num_ids());
    }
  }
  return batch;
}

/// Bags of two ids, each id once, whose weights are so small that their sums are 0 or -0.
inline HostBatch batch_of_zero_sums() {
  HostBatch batch;
  batch.num_examples = 40;
  batch.dim = 8;
  batch.poolings = {Pooling::kSum};
  batch.max_lengths = {1};
  for (std::int64_t i = 0; i < 2 * batch.num_examples; ++i) {
    batch.keys.push_back(make_key(TableId{}, static_cast<std::uint64_t>(i)));
    batch.weights.push_back(std::numeric_limits<float>::denorm_min());
    if (i % 2 == 1) batch.offsets.push_back(batch.num_ids());
  }
  return batch;
}

/// One bag, which has one key `count` times.
inline HostBatch one_key(std::int64_t count, std::int64_t dim) {
  HostBatch batch;
  batch.num_examples = 1;
  batch.dim = dim;
  batch.poolings = {Pooling::kSum};
  batch.max_lengths = {1};
  batch.keys.assign(static_cast<std::size_t>(count), make_key(TableId{3}, 77));
  batch.offsets = {0, count};
  return batch;
}

/// At most num_ids ids in three features with bags of 0 to 2000. About duplicate_percent of them
/// have occurred before; 100: all are the same.
inline HostBatch batch_with_duplicates(std::int64_t num_ids,
                                       std::int64_t duplicate_percent,
                                       std::int64_t dim,
                                       std::uint64_t seed) {
  Random random(seed);
  HostBatch batch;
  batch.num_examples = 7;
  batch.dim = dim;
  batch.poolings = {Pooling::kSum, Pooling::kMean, Pooling::kSqrtN};
  batch.max_lengths = {1, 1, 1};
  const std::int64_t num_bags = batch.num_features() * batch.num_examples;
  while (static_cast<std::int64_t>(batch.offsets.size()) <= num_bags) {
    // The first bag has the greatest length.
    const std::int64_t wanted = batch.num_ids() == 0 ? 2000 : random.below(300);
    const std::int64_t length = std::min(wanted, num_ids - batch.num_ids());
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t before = batch.num_ids();
      const bool again = before > 0 && random.below(100) < duplicate_percent;
      batch.keys.push_back(
          again ? batch.keys[static_cast<std::size_t>(random.below(before))]
                : make_key(static_cast<TableId>(before % 3), static_cast<std::uint64_t>(before)));
    }
    batch.offsets.push_back(batch.num_ids());
  }
  return batch;
}

/// From almost no duplicates to nothing else, for tests that try them all.
inline constexpr std::int64_t kDuplicatePercents[] = {1, 25, 50, 90, 99, 100};

/// The batch on the device.
class DeviceBatch {
 public:
  explicit DeviceBatch(const HostBatch& batch)
      : keys_(batch.keys),
        offsets_(batch.offsets),
        weights_(batch.weights),
        features_(batch.features()),
        long_bags_(batch.long_bags()) {
    bags_.keys = keys_.data();
    bags_.offsets = offsets_.data();
    bags_.weights = batch.weights.empty() ? nullptr : weights_.data();
    bags_.features = features_.data();
    bags_.long_bags = long_bags_.data();
    bags_.num_long_bags = std::ssize(batch.long_bags());
    bags_.num_ids = batch.num_ids();
    bags_.num_examples = batch.num_examples;
    bags_.num_features = batch.num_features();
    bags_.num_vectors = batch.num_vectors();
    bags_.row_stride = batch.row_stride();
  }
  const backend::Bags& bags() const { return bags_; }

 private:
  DeviceArray<Key> keys_;
  DeviceArray<std::int64_t> offsets_;
  DeviceArray<float> weights_;
  DeviceArray<backend::BagFeature> features_;
  DeviceArray<std::int32_t> long_bags_;
  backend::Bags bags_;
};

}  // namespace satrap::testing
