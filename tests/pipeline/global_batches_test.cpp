#include "satrap/pipeline/global_batches.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "satrap/pipeline/stages.h"
#include "tests/pipeline/driver_fixture.h"
#include "tests/pipeline/rank_threads.h"
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
  job.embedding.store = job::StoreKind::kPs;
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

/// Batches of one example each, the same number in each of two epochs.
class TwoEpochs final : public data::BatchSource {
 public:
  explicit TwoEpochs(std::int64_t batches_per_epoch) : batches_per_epoch_(batches_per_epoch) {}
  bool next(data::Batch& batch) override {
    if (has_ended_epoch()) position_ = {.epoch = position_.epoch + 1};
    if (position_.epoch == 2) return false;
    ++position_.batches;
    batch.num_examples = 1;
    return true;
  }
  data::DataPosition position() const override { return position_; }
  bool has_ended_epoch() const override { return position_.batches == batches_per_epoch_; }
  data::ReadStats stats() const override { return {}; }
  void close() override {}

 private:
  const std::int64_t batches_per_epoch_;
  data::DataPosition position_;
};

TEST(GlobalBatches, OfAnEpochEndWithThoseOfTheRankThatHasTheMost) {
  RankThreads ranks;
  ranks.run(2, [](Cluster& cluster) {
    cluster.share([] { return ""; });
    TwoEpochs source(1 + cluster.rank());
    StageTimers timers(kNumStages);
    GlobalBatches batches(source, {}, {}, cluster.make_communicator("planners"), cluster, timers);
    data::Batch batch;
    RankShares shares;
    std::vector<std::int64_t> ended;
    while (batches.next(batch, shares)) ended.push_back(shares.ended_epochs);
    EXPECT_EQ(ended, (std::vector<std::int64_t>{0, 1, 0, 2})) << "rank " << cluster.rank();
  });
}

TEST(GlobalBatches, OfOneRankAloneEndWithItsEpochs) {
  const job::JobConfig job;
  const Cluster cluster(job, {});
  TwoEpochs source(2);
  StageTimers timers(kNumStages);
  GlobalBatches batches(source, {}, {}, nullptr, cluster, timers);
  data::Batch batch;
  RankShares shares;
  std::vector<std::int64_t> ended;
  while (batches.next(batch, shares)) ended.push_back(shares.ended_epochs);
  EXPECT_EQ(ended, (std::vector<std::int64_t>{0, 1, 0, 2}));
}

/// Batches of one example each, and then an error, or the end.
class Batches final : public data::BatchSource {
 public:
  Batches(std::int64_t num_batches, bool fails, bool has_end)
      : num_batches_(num_batches), fails_(fails), has_end_(has_end) {}
  bool next(data::Batch& batch) override {
    if (position_.batches == num_batches_) {
      if (fails_) throw Error(ErrorCode::kInvalidData, "log.csv:7: not a number");
      return false;
    }
    ++position_.batches;
    batch.num_examples = 1;
    return true;
  }
  data::DataPosition position() const override { return position_; }
  data::ReadStats stats() const override { return {}; }
  std::int64_t rows_per_epoch() const override { return has_end_ ? num_batches_ : 0; }
  void close() override {}

 private:
  const std::int64_t num_batches_;
  const bool fails_, has_end_;
  data::DataPosition position_;
};

class GlobalBatchesOfThree : public testing::Test {
 protected:
  static constexpr std::int64_t kRanks = 3;

  /// Calls body(batches, rank) in the planner of each rank; `fails`, `endless`: one of them, or -1.
  void run(const std::function<void(GlobalBatches&, std::int64_t)>& body,
           std::int64_t fails = -1,
           std::int64_t endless = -1) {
    ranks_.run(kRanks, [&](Cluster& cluster) {
      cluster.share([] { return ""; });
      const std::int64_t rank = cluster.rank();
      Batches source(4, rank == fails, rank != endless);
      StageTimers timers(kNumStages);
      GlobalBatches batches(source, {}, {}, cluster.make_communicator("planners"), cluster, timers);
      body(batches, rank);
    });
  }

 private:
  RankThreads ranks_;
};

TEST_F(GlobalBatchesOfThree, AreReadAsFarAheadAsTheRankThatWantsTheFewest) {
  run([](GlobalBatches& batches, std::int64_t rank) {
    data::Batch batch;
    RankShares shares;
    batches.want_ahead(7 - rank);
    EXPECT_EQ(batches.num_ahead(), 0);  // nothing heard yet
    ASSERT_TRUE(batches.next(batch, shares));
    EXPECT_EQ(batches.num_ahead(), 5);
    batches.want_ahead(3 + rank);
    EXPECT_EQ(batches.num_ahead(), 5);  // what all know
    ASSERT_TRUE(batches.next(batch, shares));
    EXPECT_EQ(batches.num_ahead(), 3);
  });
}

TEST_F(GlobalBatchesOfThree, AreNotReadAheadWhereThoseOfOneRankHaveNoEnd) {
  run(
      [](GlobalBatches& batches, std::int64_t) {
        data::Batch batch;
        RankShares shares;
        batches.want_ahead(7);
        ASSERT_TRUE(batches.next(batch, shares));
        EXPECT_EQ(batches.num_ahead(), 0);
      },
      -1, 1);
}

TEST_F(GlobalBatchesOfThree, ThatOneRankCannotReadFailOnAllInTheSameStep) {
  run(
      [](GlobalBatches& batches, std::int64_t rank) {
        data::Batch batch;
        RankShares shares;
        for (int i = 0; i < 4; ++i) ASSERT_TRUE(batches.next(batch, shares));
        EXPECT_FALSE(batches.error());
        EXPECT_FALSE(batches.next(batch, shares));
        EXPECT_EQ(message_of(rank == 1 ? ErrorCode::kInvalidData : ErrorCode::kIo,
                             [&] { std::rethrow_exception(batches.error()); }),
                  rank == 1 ? "log.csv:7: not a number" : "rank 1 could not read its data");
      },
      1);
}

/// Data without an end, that come when the test says so.
class Arrivals final : public data::BatchSource {
 public:
  bool next(data::Batch& batch) override {
    if (num_ready_ == 0) return false;  // a stop
    --num_ready_;
    ++position_.batches;
    batch.num_examples = 1;
    return true;
  }
  bool wait(std::chrono::milliseconds) override { return num_ready_ > 0 || is_stopped_; }
  bool is_endless() const override { return true; }
  data::DataPosition position() const override { return position_; }
  data::ReadStats stats() const override { return {.lag = lag_, .time_ms = 100 + lag_}; }
  void close() override {}

  void arrive(std::int64_t num_batches) { num_ready_ += num_batches; }
  void stop() { is_stopped_ = true; }
  void set_lag(std::int64_t lag) { lag_ = lag; }

 private:
  std::atomic<std::int64_t> num_ready_ = 0, lag_ = -1;
  std::atomic<bool> is_stopped_ = false;
  data::DataPosition position_;
};

TEST(GlobalBatches, OfEndlessDataARankWithoutAnyDoesNotHoldUpTheOthers) {
  RankThreads ranks;
  ranks.run(2, [](Cluster& cluster) {
    cluster.share([] { return ""; });
    Arrivals source;
    if (cluster.rank() == 0) source.arrive(3);
    source.set_lag(10 * (cluster.rank() + 1));
    StageTimers timers(kNumStages);
    GlobalBatches batches(source, {}, {}, cluster.make_communicator("planners"), cluster, timers);
    data::Batch batch;
    RankShares shares;
    for (std::int64_t step = 1; step <= 3; ++step) {
      ASSERT_TRUE(batches.next(batch, shares));
      EXPECT_EQ(batch.num_examples, cluster.rank() == 0 ? 1 : 0);
      EXPECT_EQ(shares.global_examples, 1);
      EXPECT_EQ(shares.ended_epochs, 0);
      EXPECT_EQ(shares.positions[0].batches, step);
      EXPECT_EQ(shares.lag, 30);
      EXPECT_EQ(shares.time_ms, 110) << "of the rank that is furthest behind";
      EXPECT_EQ(shares.read_seconds.size(), 2U);
    }
    if (cluster.rank() == 0) source.set_lag(0);
    if (cluster.rank() == 1) source.arrive(1);
    ASSERT_TRUE(batches.next(batch, shares)) << "rank 0 has none now, and rank 1 one";
    EXPECT_EQ(shares.global_examples, 1);
    EXPECT_EQ(batch.num_examples, cluster.rank());
    source.set_lag(0);
    if (cluster.rank() == 0) source.arrive(1);
    ASSERT_TRUE(batches.next(batch, shares));
    EXPECT_EQ(shares.lag, 0);
    EXPECT_EQ(shares.time_ms, 100) << "all have read all there is";
  });
}

TEST(GlobalBatches, OfEndlessDataEndOnAllRanksWhereOneStops) {
  RankThreads ranks;
  ranks.run(3, [](Cluster& cluster) {
    cluster.share([] { return ""; });
    Arrivals source;
    source.arrive(2 + (cluster.rank() == 0 ? 5 : 0));
    StageTimers timers(kNumStages);
    GlobalBatches batches(source, {}, {}, cluster.make_communicator("planners"), cluster, timers);
    data::Batch batch;
    RankShares shares;
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(batches.next(batch, shares));
    if (cluster.rank() == 1) source.stop();
    EXPECT_FALSE(batches.next(batch, shares)) << "rank 0 has more, and rank 2 waits";
    EXPECT_FALSE(batches.error());
  });
}

}  // namespace
}  // namespace satrap::pipeline
