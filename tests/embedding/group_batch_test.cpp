#include "satrap/embedding/group_batch.h"

#include <random>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/backend/stream.h"
#include "satrap/core/error.h"
#include "tests/embedding/random_bags.h"
#include "tests/support/device/device.h"

namespace satrap::embedding {
namespace {

using satrap::testing::device;
using satrap::testing::download;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// The arrays of a batch on the device.
struct OnDevice {
  std::vector<Key> keys;
  std::vector<std::int64_t> offsets;
  std::vector<float> weights;
  std::vector<backend::BagFeature> features;
  backend::Bags bags;
};

OnDevice on_device(const GroupBatch& batch) {
  OnDevice out;
  out.bags = batch.bags();
  out.keys = download(out.bags.keys, out.bags.num_ids);
  out.offsets = download(out.bags.offsets, out.bags.num_features * out.bags.num_examples + 1);
  if (out.bags.weights != nullptr) out.weights = download(out.bags.weights, out.bags.num_ids);
  out.features = download(out.bags.features, out.bags.num_features);
  return out;
}

/// Tables of 8 weights, except for table 1, of 5. Features alternate between the groups.
struct Job {
  explicit Job(std::int64_t num_threads = 1) : pool(num_threads) {}

  OnDevice fill(GroupBatch& batch, const data::Batch& from) {
    const backend::Stream stream(device());
    batch.fill(from, layout.output_width);
    batch.upload(stream);
    stream.wait_until_idle();
    return on_device(batch);
  }

  std::vector<table::TableSpec> tables{table_spec(0, 8), table_spec(1, 5), table_spec(2, 8)};
  std::vector<job::FeatureSpec> features{feature(2, Pooling::kSequence, 2),
                                         feature(1, Pooling::kSequence, 3),
                                         feature(0, Pooling::kMean)};
  FeatureLayout layout{features, tables, FeatureLayout::kDeviceColumns};
  TableGroups groups{features, tables, 1};
  ThreadPool pool;
  GroupBatch eights{device(), layout, groups.groups()[0], pool};
  GroupBatch fives{device(), layout, groups.groups()[1], pool};
};

TEST(GroupBatch, HasTheIdsOfItsFeaturesAsKeysOneFeatureAfterTheOther) {
  SATRAP_NEEDS_DEVICE();
  Job job;
  data::Batch batch = batch_of({{{7}, {8, 9}}, {{1, 2, 3, 4}, {}}, {{}, {7}}});
  batch.id_weights = {1, 2, 3, 4, 5, 6, 7, 8};
  const OnDevice eights = job.fill(job.eights, batch);
  const auto key = [](int table, std::uint64_t id) {
    return make_key(static_cast<TableId>(table), id);
  };
  EXPECT_THAT(eights.keys, ElementsAre(key(2, 7), key(2, 8), key(2, 9), key(0, 7)));
  EXPECT_THAT(eights.offsets, ElementsAre(0, 1, 3, 3, 4));
  EXPECT_THAT(eights.weights, ElementsAre(1, 2, 3, 8));
  ASSERT_EQ(eights.features.size(), 2U);
  EXPECT_EQ(eights.features[0].column, 0);
  EXPECT_EQ(eights.features[0].first_vector, 0);
  EXPECT_EQ(eights.features[0].pooling, Pooling::kSequence);
  EXPECT_EQ(eights.features[0].vectors_per_row, 2);
  EXPECT_EQ(eights.features[1].column, 2 * 8 + 3 * 8);  // after three padded vectors of 5
  EXPECT_EQ(eights.features[1].first_vector, 2 * 2);
  EXPECT_EQ(eights.features[1].pooling, Pooling::kMean);
  EXPECT_EQ(eights.features[1].vectors_per_row, 1);
  EXPECT_EQ(eights.bags.num_ids, 4);
  EXPECT_EQ(eights.bags.num_examples, 2);
  EXPECT_EQ(eights.bags.num_features, 2);
  EXPECT_EQ(eights.bags.num_vectors, 4 + 2);
  EXPECT_EQ(eights.bags.row_stride, 2 * 8 + 3 * 8 + 8);

  const OnDevice fives = job.fill(job.fives, batch);
  EXPECT_THAT(fives.keys, ElementsAre(key(1, 1), key(1, 2), key(1, 3), key(1, 4)));
  EXPECT_THAT(fives.offsets, ElementsAre(0, 4, 4));
  EXPECT_THAT(fives.weights, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(fives.features[0].column, 2 * 8);
  EXPECT_EQ(fives.bags.num_vectors, 6);
}

TEST(GroupBatch, OfKeysHasABagAndARowOfTheOutputForEach) {
  SATRAP_NEEDS_DEVICE();
  Job job;
  job.fill(job.eights, batch_of({{{7}, {8, 9}}, {{1}, {}}, {{}, {7}}}));
  const std::vector<Key> keys = {make_key(TableId{0}, 5), make_key(TableId{2}, 1),
                                 make_key(TableId{0}, 5)};
  const backend::Stream stream(device());
  job.eights.fill(keys);
  job.eights.upload(stream);
  stream.wait_until_idle();
  const OnDevice of_keys = on_device(job.eights);
  EXPECT_EQ(of_keys.keys, keys);
  EXPECT_THAT(of_keys.offsets, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(of_keys.weights, IsEmpty());
  ASSERT_EQ(of_keys.features.size(), 1U);
  EXPECT_EQ(of_keys.features[0].column, 0);
  EXPECT_EQ(of_keys.features[0].vectors_per_row, 1);
  EXPECT_EQ(of_keys.bags.num_examples, 3);
  EXPECT_EQ(of_keys.bags.num_vectors, 3);
  EXPECT_EQ(of_keys.bags.row_stride, 8);
  EXPECT_EQ(job.eights.count_keys(), 2);

  job.eights.fill(std::span<const Key>());
  EXPECT_EQ(job.eights.bags().num_ids, 0);

  // Then a batch of features again.
  const OnDevice eights = job.fill(job.eights, batch_of({{{7}}, {{1}}, {{3}}}));
  EXPECT_THAT(eights.keys, ElementsAre(make_key(TableId{2}, 7), make_key(TableId{0}, 3)));
  EXPECT_EQ(eights.features.size(), 2U);
  EXPECT_EQ(eights.bags.num_vectors, 3);
}

TEST(GroupBatch, ListsItsLongBags) {
  SATRAP_NEEDS_DEVICE();
  Job job;
  const auto longest = static_cast<std::size_t>(backend::kMaxShortBag);
  const std::vector<std::uint64_t> short_bag(longest, 5), long_bag(longest + 1, 6);
  const auto listed = [&](const OnDevice& batch) {
    return download(batch.bags.long_bags, batch.bags.num_long_bags);
  };
  const data::Batch batch =
      batch_of({{short_bag, long_bag, {1}}, {long_bag, {}, {}}, {{}, {7}, long_bag}});
  EXPECT_THAT(listed(job.fill(job.eights, batch)), ElementsAre(1, 3 + 2));
  EXPECT_THAT(listed(job.fill(job.fives, batch)), ElementsAre(0));
  const std::vector<Key> keys(longest + 1, make_key(TableId{0}, 5));
  job.eights.fill(keys);
  EXPECT_EQ(job.eights.bags().num_long_bags, 0);
}

TEST(GroupBatch, WithoutIdsThereAreBagsAndNoKeys) {
  SATRAP_NEEDS_DEVICE();
  Job job;
  const OnDevice out = job.fill(job.eights, batch_of({{{}, {}}, {{5}, {}}, {{}, {}}}));
  EXPECT_THAT(out.keys, IsEmpty());
  EXPECT_THAT(out.offsets, ElementsAre(0, 0, 0, 0, 0));
  EXPECT_EQ(out.bags.num_ids, 0);
  EXPECT_EQ(out.bags.num_vectors, 6);
  EXPECT_EQ(out.bags.weights, nullptr);
}

TEST(GroupBatch, WithoutExamplesThereIsNothing) {
  SATRAP_NEEDS_DEVICE();
  Job job;
  const OnDevice out = job.fill(job.eights, batch_of({{}, {}, {}}));
  EXPECT_THAT(out.offsets, ElementsAre(0));
  EXPECT_EQ(out.bags.num_examples, 0);
  EXPECT_EQ(out.bags.num_vectors, 0);
  EXPECT_EQ(out.features.size(), 2U);
}

TEST(GroupBatch, AGroupThatNothingReadsHasNoBags) {
  SATRAP_NEEDS_DEVICE();
  Job job;
  const TableGroup unread{job.groups.groups()[0].layout, RowOptimizerType::kAdagrad, {}, {}};
  GroupBatch batch(device(), job.layout, unread, job.pool);
  const OnDevice out = job.fill(batch, batch_of({{{7}}, {{1}}, {{7}}}));
  EXPECT_EQ(out.bags.num_features, 0);
  EXPECT_EQ(out.bags.num_vectors, 0);
  EXPECT_THAT(out.offsets, ElementsAre(0));
}

/// The expected arrays by the definition, one id at a time.
OnDevice expected(const Job& job, const TableGroup& group, const data::Batch& batch) {
  OnDevice out;
  out.offsets = {0};
  for (const std::size_t f : group.features) {
    for (std::int64_t r = 0; r < batch.num_examples; ++r) {
      const auto bag =
          f * static_cast<std::size_t>(batch.num_examples) + static_cast<std::size_t>(r);
      for (auto i = static_cast<std::size_t>(batch.offsets[bag]);
           i < static_cast<std::size_t>(batch.offsets[bag + 1]); ++i) {
        out.keys.push_back(make_key(job.features[f].table, batch.ids[i]));
        if (!batch.id_weights.empty()) out.weights.push_back(batch.id_weights[i]);
      }
      out.offsets.push_back(std::ssize(out.keys));
    }
  }
  return out;
}

TEST(GroupBatch, IsReusedForLargerAndSmallerBatches) {
  SATRAP_NEEDS_DEVICE();
  std::mt19937_64 random(3);
  for (const std::int64_t num_threads : {1, 3}) {
    Job job(num_threads);
    for (const std::int64_t num_examples : {1, 511, 512, 1300, 0, 7, 1301}) {
      SCOPED_TRACE(num_examples);
      const data::Batch batch =
          random_batch(random, 3, num_examples, 5, 300, num_examples % 2 == 0);
      for (std::size_t g = 0; g < 2; ++g) {
        const OnDevice wanted = expected(job, job.groups.groups()[g], batch);
        const OnDevice out = job.fill(g == 0 ? job.eights : job.fives, batch);
        ASSERT_EQ(out.keys, wanted.keys);
        ASSERT_EQ(out.offsets, wanted.offsets);
        ASSERT_EQ(out.weights, wanted.weights);
      }
    }
  }
}

TEST(GroupBatch, MemoryStaysWhereItIsForBatchesThatAreNoLarger) {
  SATRAP_NEEDS_DEVICE();
  Job job;
  std::mt19937_64 random(4);
  job.eights.fill(random_batch(random, 3, 100, 5, 300, true), job.layout.output_width);
  const Key* const keys = job.eights.bags().keys;
  for (const std::int64_t num_examples : {90, 1, 0, 50}) {
    job.eights.fill(random_batch(random, 3, num_examples, 5, 300, true), job.layout.output_width);
    EXPECT_EQ(job.eights.bags().keys, keys);
  }
}

TEST(GroupBatch, RefusesALayoutOfTheHostAndRowsThatDoNotFit) {
  SATRAP_NEEDS_DEVICE();
  Job job;
  const FeatureLayout of_host(job.features, job.tables);
  EXPECT_THROW(GroupBatch(device(), of_host, job.groups.groups()[1], job.pool), Error);
  const data::Batch batch = batch_of({{{7}}, {{1}}, {{7}}});
  EXPECT_THROW(job.eights.fill(batch, job.layout.output_width - 4), Error);
  EXPECT_THROW(job.eights.fill(batch, job.layout.output_width + 2), Error);
  EXPECT_THROW(job.eights.fill(batch_of({{{7}}, {{1}}}), job.layout.output_width), Error);
  job.eights.fill(batch, job.layout.output_width + 4);
  EXPECT_EQ(job.eights.bags().row_stride, job.layout.output_width + 4);
}

}  // namespace
}  // namespace satrap::embedding
