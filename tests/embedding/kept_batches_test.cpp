#include "src/embedding/kept_batches.h"

#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/embedding/random_bags.h"
#include "tests/support/device/device.h"

namespace satrap::embedding {
namespace {

using satrap::testing::device;
using satrap::testing::download;

/// Two table groups, of 8 and of 5 weights.
struct TwoGroups {
  std::vector<std::unique_ptr<GroupPart>> make_parts() {
    std::vector<std::unique_ptr<GroupPart>> parts;
    for (const TableGroup& group : groups.groups()) {
      parts.push_back(std::make_unique<GroupPart>(device(), layout, group, pool));
    }
    return parts;
  }

  data::Batch next_batch() {  // perhaps an empty one; seldom a large one
    const auto num_examples = static_cast<std::int64_t>(random() % 8 == 0 ? 40 : random() % 5);
    const std::int64_t max_bag = random() % 8 == 0 ? 2 * backend::kMaxShortBag : 3;
    return random_batch(random, 2, num_examples, max_bag, 100, random() % 2 == 0);
  }

  std::mt19937_64 random{5};
  std::vector<table::TableSpec> tables{table_spec(0, 8), table_spec(1, 5)};
  std::vector<job::FeatureSpec> features{feature(0, Pooling::kSum), feature(1, Pooling::kMean)};
  FeatureLayout layout{features, tables, FeatureLayout::kDeviceColumns};
  TableGroups groups{features, tables, 1};
  ThreadPool pool{1};
  KeptBatches kept{device(), layout, pool, 1 << 20};
};

/// Of each group, as the device has it.
struct Uploaded {
  std::vector<Key> keys;
  std::vector<std::int64_t> offsets, sizes;
  std::vector<float> weights;
  std::vector<std::int32_t> long_bags;
  bool operator==(const Uploaded&) const = default;
};

void upload(KeptBatches::Parts parts, const backend::Stream& stream) {
  for (const auto& part : parts) part->batch.upload(stream);
}

std::vector<Uploaded> uploaded(KeptBatches::Parts parts, const backend::Stream& stream) {
  upload(parts, stream);
  stream.wait_until_idle();
  std::vector<Uploaded> found;
  for (const auto& part : parts) {
    const backend::Bags bags = part->batch.bags();
    Uploaded& group = found.emplace_back();
    group.keys = download(bags.keys, bags.num_ids);
    group.offsets = download(bags.offsets, bags.num_features * bags.num_examples + 1);
    if (bags.weights != nullptr) group.weights = download(bags.weights, bags.num_ids);
    group.long_bags = download(bags.long_bags, bags.num_long_bags);
    group.sizes = {bags.num_examples, bags.num_vectors, bags.row_stride};
  }
  return found;
}

/// A window of several batches; the way of a batch to the device is still queued when the next one
/// is looked at.
TEST(KeptBatches, AreThoseThatWereLookedAt) {
  SATRAP_NEEDS_DEVICE();
  satrap::testing::for_each_schedule([] {
    TwoGroups job;
    const backend::Stream stream(device());
    const auto looked_at = job.make_parts(), planned = job.make_parts(),
               expected = job.make_parts();
    std::vector<data::Batch> batches;
    for (std::int64_t step = 0; step < 40; ++step) {
      while (std::ssize(batches) < std::min<std::int64_t>(step + 1 + step / 8, 40)) {
        const data::Batch& batch = batches.emplace_back(job.next_batch());
        for (const auto& part : looked_at) part->batch.fill(batch, job.layout.output_width);
        upload(looked_at, stream);
        ASSERT_TRUE(job.kept.keep(std::ssize(batches), looked_at));
      }
      ASSERT_TRUE(job.kept.take(step + 1, planned));
      for (const auto& part : expected) {
        part->batch.fill(batches[static_cast<std::size_t>(step)], job.layout.output_width);
      }
      EXPECT_EQ(uploaded(planned, stream), uploaded(expected, stream)) << "step " << step;
    }
    EXPECT_FALSE(job.kept.take(41, planned));
  });
}

/// One that does not fit stays in its parts, and later ones may fit.
TEST(KeptBatches, TakeNoMoreMemoryThanTheyMay) {
  SATRAP_NEEDS_DEVICE();
  TwoGroups job;
  const backend::Stream stream(device());
  const auto parts = job.make_parts();
  const auto fill = [&](std::int64_t num_examples) {
    const data::Batch batch = random_batch(job.random, 2, num_examples, 3, 100, false);
    for (const auto& part : parts) part->batch.fill(batch, job.layout.output_width);
    return uploaded(parts, stream);
  };
  fill(100);
  const std::int64_t bytes = parts[0]->batch.host_bytes() + parts[1]->batch.host_bytes();
  KeptBatches kept(device(), job.layout, job.pool, bytes + bytes / 2);
  EXPECT_TRUE(kept.keep(1, parts));
  const std::vector<Uploaded> second = fill(100);
  EXPECT_FALSE(kept.keep(2, parts));
  EXPECT_EQ(uploaded(parts, stream), second);
  EXPECT_TRUE(kept.take(1, parts));
  EXPECT_FALSE(kept.take(2, parts));
  EXPECT_TRUE(kept.keep(3, parts));
}

TEST(KeptBatches, AreGivenOutInTheirOrder) {
  SATRAP_NEEDS_DEVICE();
  TwoGroups job;
  const backend::Stream stream(device());
  const auto parts = job.make_parts();
  const auto keep = [&](std::int64_t step) {
    const data::Batch batch = job.next_batch();
    for (const auto& part : parts) part->batch.fill(batch, job.layout.output_width);
    return job.kept.keep(step, parts);
  };
  EXPECT_TRUE(keep(5));
  EXPECT_TRUE(keep(6));
  EXPECT_THROW(keep(6), Error);
  EXPECT_FALSE(job.kept.take(4, parts));  // which nobody has looked at
  EXPECT_THROW(job.kept.take(6, parts), Error);
  EXPECT_TRUE(job.kept.take(5, parts));
  EXPECT_TRUE(job.kept.take(6, parts));
  EXPECT_FALSE(job.kept.take(6, parts));
}

}  // namespace
}  // namespace satrap::embedding
