#include "satrap/pipeline/rank_group.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/dense/dense_network.h"
#include "satrap/pipeline/stages.h"
#include "tests/pipeline/rank_threads.h"

namespace satrap::pipeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A network of `num_parameters` >= 1, whose gradient is set by hand.
class SmallNetwork {
 public:
  explicit SmallNetwork(std::int64_t num_parameters, std::uint64_t seed = 1)
      : network_(
            dense::DenseNetwork::create({.type = job::ModelType::kLogistic},
                                        {},
                                        dense::Precision::kFp32,
                                        {.num_numeric = num_parameters - 1, .field_widths = {1}},
                                        seed,
                                        pool_)) {}
  dense::DenseNetwork& operator*() { return *network_; }
  dense::DenseNetwork* operator->() { return network_.get(); }

  void set_gradient(float value) { std::ranges::fill(network_->gradient(), value); }
  std::vector<float> gradient() {
    return {network_->gradient().begin(), network_->gradient().end()};
  }

 private:
  ThreadPool pool_{1};
  const std::unique_ptr<dense::DenseNetwork> network_;
};

class RankGroupTest : public testing::Test {
 protected:
  /// Runs body(group, rank) on each of three ranks.
  void run(const std::function<void(RankGroup&, std::int64_t)>& body) const {
    threads_.run(3, [&](Cluster& cluster) {
      cluster.share([] { return ""; });
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
  SmallNetwork network(2);
  network.set_gradient(2);
  const StepVotes votes = group.reduce(*network, {.stop = true});
  EXPECT_TRUE(votes.stop);
  EXPECT_FALSE(votes.checkpoint);
  EXPECT_THAT(network.gradient(), ElementsAre(2, 2));
  EXPECT_THAT(group.gather(std::vector<std::int64_t>{3, 4}), ElementsAre(3, 4));
  EXPECT_TRUE(group.any(true));
  EXPECT_FALSE(group.any(false));
  group.barrier();
}

TEST_F(RankGroupTest, TheGradientIsTheSumOfAll) {
  for (const std::int64_t size :
       {std::int64_t{1}, std::int64_t{5}, 2 * dense::DenseNetwork::kGradientBucket + 3}) {
    run([&](RankGroup& group, std::int64_t rank) {
      SmallNetwork network(size);
      network.set_gradient(static_cast<float>(rank + 1));
      for (int step = 1; step <= 2; ++step) group.reduce(*network, {});
      EXPECT_EQ(network.gradient(), std::vector<float>(static_cast<std::size_t>(size), 18)) << size;
      EXPECT_EQ(network->flag(), 0.0F);
    });
  }
}

TEST_F(RankGroupTest, AFlagOfOneIsSetForAll) {
  run([&](RankGroup& group, std::int64_t rank) {
    SmallNetwork network(3);
    network->flag_and_first_bucket()[0] = rank == 1 ? 1.0F : 0.0F;
    group.reduce(*network, {});
    EXPECT_NE(network->flag(), 0.0F);
  });
}

TEST_F(RankGroupTest, EverybodyGetsTheStateOfTheChief) {
  run([&](RankGroup& group, std::int64_t rank) {
    SmallNetwork network(3, static_cast<std::uint64_t>(rank) + 1), chief(3, 1);
    group.copy_from_chief(*network);
    const dense::DenseNetwork::State mine = network->save(), wanted = chief->save();
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(mine[i].values, wanted[i].values);
  });
}

TEST_F(RankGroupTest, WhatOneAsksForAllHearInTheSameStep) {
  run([](RankGroup& group, std::int64_t rank) {
    SmallNetwork network(1);
    StepVotes votes = group.reduce(*network, {.stop = rank == 0, .checkpoint = rank == 2});
    EXPECT_TRUE(votes.stop);
    EXPECT_TRUE(votes.checkpoint);
    EXPECT_FALSE(votes.evaluate);
    votes = group.reduce(*network, {.evaluate = rank == 1});
    EXPECT_FALSE(votes.stop);
    EXPECT_FALSE(votes.checkpoint);
    EXPECT_TRUE(votes.evaluate);
    votes = group.reduce(*network, {});
    EXPECT_FALSE(votes.stop || votes.checkpoint || votes.evaluate || votes.decline);
    votes = group.reduce(*network, {.decline = rank == 2});
    EXPECT_TRUE(votes.decline);
    EXPECT_FALSE(votes.stop);
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
