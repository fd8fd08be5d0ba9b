#include "satrap/pipeline/rank_group.h"

#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/pipeline/stages.h"
#include "tests/pipeline/rank_threads.h"

namespace satrap::pipeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RankGroupTest : public testing::Test {
 protected:
  /// body(group, rank) of each of three ranks.
  void run(const std::function<void(RankGroup&, std::int64_t)>& body) const {
    threads_.run(3, [&](Cluster& cluster) {
      cluster.share("");
      StageTimers timers(kNumStages);
      RankGroup group(cluster, timers);
      body(group, cluster.rank());
    });
  }
  RankThreads threads_;
};

TEST(RankAlone, HearsItself) {
  const job::JobConfig job;
  Cluster cluster(job, {});
  StageTimers timers(kNumStages);
  RankGroup group(cluster, timers);
  std::vector<float> gradient = {1, 2};
  const StepVotes votes = group.reduce(gradient, {.stop = true});
  EXPECT_TRUE(votes.stop);
  EXPECT_FALSE(votes.checkpoint);
  EXPECT_THAT(gradient, ElementsAre(1, 2));
  EXPECT_THAT(group.gather(std::vector<std::int64_t>{3, 4}), ElementsAre(3, 4));
  EXPECT_TRUE(group.any(true));
  EXPECT_FALSE(group.any(false));
  group.barrier();
}

TEST_F(RankGroupTest, TheGradientIsTheSumOfAll) {
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5},
                                  2 * dense::DenseNetwork::kGradientStretch + 3}) {
    run([&](RankGroup& group, std::int64_t rank) {
      std::vector<float> gradient(static_cast<std::size_t>(size), static_cast<float>(rank + 1));
      for (int step = 1; step <= 2; ++step) group.reduce(gradient, {});
      EXPECT_EQ(gradient, std::vector<float>(static_cast<std::size_t>(size), 18)) << size;
    });
  }
}

TEST_F(RankGroupTest, WhatOneAsksForAllHearInTheSameStep) {
  run([](RankGroup& group, std::int64_t rank) {
    std::vector<float> gradient(1);
    StepVotes votes = group.reduce(gradient, {.stop = rank == 0, .checkpoint = rank == 2});
    EXPECT_TRUE(votes.stop);
    EXPECT_TRUE(votes.checkpoint);
    EXPECT_FALSE(votes.evaluate);
    votes = group.reduce(gradient, {.evaluate = rank == 1});
    EXPECT_FALSE(votes.stop);
    EXPECT_FALSE(votes.checkpoint);
    EXPECT_TRUE(votes.evaluate);
    votes = group.reduce(gradient, {});
    EXPECT_FALSE(votes.stop || votes.checkpoint || votes.evaluate);
  });
}

TEST_F(RankGroupTest, GathersInTheOrderOfRanksHoweverManyEachHas) {
  run([](RankGroup& group, std::int64_t rank) {
    std::vector<std::int64_t> mine(static_cast<std::size_t>(rank), rank);
    EXPECT_THAT(group.gather(mine), ElementsAre(1, 2, 2));
    EXPECT_THAT(group.gather(std::vector<double>()), IsEmpty());
    EXPECT_THAT(group.gather(std::vector<float>{static_cast<float>(rank)}), ElementsAre(0, 1, 2));
  });
}

TEST_F(RankGroupTest, AnyIsTrueIfItIsOfOne) {
  run([](RankGroup& group, std::int64_t rank) {
    EXPECT_TRUE(group.any(rank == 2));
    EXPECT_FALSE(group.any(false));
  });
}

}  // namespace
}  // namespace satrap::pipeline
