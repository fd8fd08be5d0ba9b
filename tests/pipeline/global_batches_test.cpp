#include "satrap/pipeline/global_batches.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>

#include "satrap/pipeline/stages.h"
#include "tests/support/temporary_directory.h"

namespace satrap::pipeline {
namespace {

/// The other rank of two, which reports a batch of `rows` examples in the first step and none
/// afterwards.
class OtherRank : public collective::Communicator {
 public:
  explicit OtherRank(std::int64_t rows) : rows_(rows) {}

  std::int64_t rank() const override { return 0; }
  std::int64_t size() const override { return 2; }
  void all_reduce_sum(std::span<float>, net::Deadline) override {}
  void all_reduce_sum(std::span<double>, net::Deadline) override {}
  void all_to_all(std::span<const std::span<const std::byte>>,
                  std::span<const std::span<std::byte>> from,
                  net::Deadline) override {
    const std::int64_t rows = std::exchange(rows_, 0);  // its line begins with the number
    std::ranges::fill(from[1], std::byte{});
    std::memcpy(from[1].data(), &rows, sizeof(rows));
  }
  std::unique_ptr<Reduction> begin_all_reduce_sum(std::span<float>) override { return nullptr; }
  void broadcast(std::span<std::byte>, std::int64_t, net::Deadline) override {}
  void barrier(net::Deadline) override {}
  void close() override {}

 private:
  std::int64_t rows_;
};

class NoRows : public data::BatchSource {
 public:
  bool next(data::Batch&) override { return false; }
  data::DataPosition position() const override { return {}; }
  data::ReadStats stats() const override { return {}; }
  void close() override {}
};

TEST(GlobalBatches, ABatchWithoutRowsIsOfTheSchemaAllTheSame) {
  const TemporaryDirectory directory;
  job::JobConfig job;
  job.embedding.store = "ps";
  job::ClusterConfig ranks;
  ranks.num_ranks = 2;
  ranks.num_shards = 1;
  ranks.store = "file://" + directory.path() + "/store";
  const Cluster cluster(job, ranks);
  data::Schema schema;
  schema.labels.resize(3);
  schema.features.resize(2);
  schema.numeric_names.resize(4);
  NoRows source;
  StageTimers timers(kNumStages);
  GlobalBatches batches(source, schema, {}, std::make_unique<OtherRank>(5), cluster, timers);

  data::Batch batch;  // of an earlier step
  batch.num_examples = 2;
  batch.labels = {1, 0};
  batch.groups = {7, 7};
  RankShares shares;
  ASSERT_TRUE(batches.next(batch, shares));
  EXPECT_EQ(shares.global_examples, 5);
  EXPECT_EQ(batch.num_examples, 0);
  EXPECT_EQ(batch.num_labels, 3);
  EXPECT_EQ(batch.num_features, 2);
  EXPECT_EQ(batch.num_numeric, 4);
  EXPECT_TRUE(batch.labels.empty());
  EXPECT_TRUE(batch.groups.empty());
  EXPECT_EQ(batch.offsets, std::vector<std::int64_t>{0});
  EXPECT_FALSE(batches.next(batch, shares));
}

}  // namespace
}  // namespace satrap::pipeline
