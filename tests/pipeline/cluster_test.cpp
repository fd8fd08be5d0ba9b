#include "satrap/pipeline/cluster.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"
#include "tests/pipeline/rank_threads.h"

namespace satrap::pipeline {
namespace {

using testing::HasSubstr;

class ClusterTest : public testing::Test {
 protected:
  static std::string refusal(const job::JobConfig& job, const job::ClusterConfig& config) {
    try {
      const Cluster cluster(job, config);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return error.what();
    }
    return "";
  }

  RankThreads threads_;
  const job::JobConfig embedded_;
};

TEST_F(ClusterTest, AProcessAloneIsItsOwnChiefWithoutANetwork) {
  Cluster cluster(embedded_, {});
  EXPECT_TRUE(cluster.is_chief());
  EXPECT_EQ(cluster.rank(), 0);
  EXPECT_EQ(cluster.size(), 1);
  EXPECT_EQ(cluster.share([] { return "text"; }), "text");
  EXPECT_EQ(cluster.make_communicator("any")->size(), 1);
  EXPECT_EQ(cluster.store(), nullptr);
}

TEST_F(ClusterTest, TablesInOneProcessAreRefusedToSeveralRanks) {
  job::ClusterConfig config;
  config.num_ranks = 2;
  EXPECT_THAT(refusal(embedded_, config), HasSubstr("there are 2 ranks; write store: ps"));
}

TEST_F(ClusterTest, TablesInOneProcessAreRefusedBesideShards) {
  job::ClusterConfig config;
  config.num_shards = 3;
  EXPECT_THAT(refusal(embedded_, config), HasSubstr("does not use the 3 shards of this job"));
}

TEST_F(ClusterTest, AJobOnShardsNeedsThemAndAStore) {
  job::ClusterConfig config = threads_.config(0, 1);
  config.num_shards = 0;
  EXPECT_THAT(refusal(threads_.job, config), HasSubstr("embedding.store: ps needs shards"));
  config = threads_.config(0, 1);
  config.store = "";
  EXPECT_THAT(refusal(threads_.job, config), HasSubstr("embedding.store: ps needs shards"));
  EXPECT_EQ(refusal(threads_.job, threads_.config(0, 1)), "");
}

TEST_F(ClusterTest, EveryRankHearsWhatTheChiefSays) {
  for (const std::string& text : {std::string("begin"), std::string(), std::string(1000, 'x')}) {
    threads_.run(3, [&](Cluster& cluster) {
      EXPECT_EQ(cluster.share([&] { return cluster.is_chief() ? text : "not this"; }), text)
          << "rank " << cluster.rank();
    });
  }
}

TEST_F(ClusterTest, GroupsAreOfAllRanksInTheirOrder) {
  threads_.run(3, [&](Cluster& cluster) {
    cluster.share([] { return ""; });
    for (const char* name : {"one", "another"}) {
      const auto group = cluster.make_communicator(name);
      EXPECT_EQ(group->rank(), cluster.rank());
      EXPECT_EQ(group->size(), 3);
      std::vector<float> values(1, static_cast<float>(cluster.rank()));
      group->all_reduce_sum(std::span(values), cluster.deadline());
      EXPECT_EQ(values[0], 3.0F);
    }
  });
}

TEST_F(ClusterTest, TheChiefGivesSignsOfLifeWhileItPreparesTheStart) {
  threads_.run(2, [&](Cluster& cluster) {
    net::PrefixRendezvous store("start-1/", cluster.store());
    const std::string shared =
        cluster.share([&] { return store.wait("signs-of-life", cluster.deadline()); });
    EXPECT_GT(std::stoll(shared), 0);
    if (cluster.is_chief()) {
      EXPECT_EQ(store.get("signs-of-life"), std::nullopt) << "a later start would take it for its";
    }
  });
}

TEST_F(ClusterTest, ARankWhoseChiefDoesNotComeGivesUp) {
  threads_.job.cluster.timeout = "100ms";
  Cluster cluster(threads_.job, threads_.config(1, 2));
  EXPECT_EQ(cluster.timeout_ms(), 100);
  EXPECT_THROW(cluster.share([] { return ""; }), net::NetError);
}

}  // namespace
}  // namespace satrap::pipeline
