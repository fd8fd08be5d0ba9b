#include "satrap/job/job_config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/job/cluster_config.h"

namespace satrap::job {
namespace {

using testing::HasSubstr;

/// The message with which the training part of a configuration is refused; "" if it is not.
/// `written`: the setting that is in the file.
std::string refusal_of(const TrainConfig& train, const std::string& written) {
  JobConfig config;
  config.train = train;
  try {
    config.validate({{written, "job.yaml:1"}});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The same for the part about where rows live.
std::string refusal_of(const EmbeddingConfig& embedding, const ConfigOrigins& written) {
  JobConfig config;
  config.embedding = embedding;
  try {
    config.validate(written);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(EmbeddingConfig, ACacheHasBytesOrAShareOfTheDevice) {
  EmbeddingConfig embedding;
  EXPECT_FALSE(embedding.has_cache());
  embedding.cache.memory = "0%";
  EXPECT_FALSE(embedding.has_cache());
  embedding.cache.memory = "1GiB";
  EXPECT_TRUE(embedding.has_cache());
  EXPECT_EQ(embedding.cache.memory_bytes(1000), 1 << 30);
  embedding.cache.memory = "25%";
  EXPECT_TRUE(embedding.has_cache());
  EXPECT_EQ(embedding.cache.memory_bytes(1000), 250);
  embedding.cache.memory = "some";
  EXPECT_THAT(refusal_of(embedding, {{"embedding.cache.memory", "job.yaml:1"}}),
              HasSubstr("job.yaml:1: embedding.cache.memory"));
}

TEST(EmbeddingConfig, AnAutomaticCacheIsForRowsOnShards) {
  EmbeddingConfig embedding;
  embedding.cache.memory = "auto";
  EXPECT_FALSE(embedding.has_cache());
  embedding.store = "ps";
  EXPECT_TRUE(embedding.has_cache());
  EXPECT_EQ(embedding.cache.memory_bytes(1000), 100);
}

TEST(EmbeddingConfig, AnEvictionBelongsToACache) {
  EmbeddingConfig embedding;
  embedding.cache.eviction = "lru";
  ConfigOrigins written{{"embedding.cache.eviction", "job.yaml:1"}};
  EXPECT_THAT(refusal_of(embedding, written),
              HasSubstr("job.yaml:1: embedding.cache.eviction: there is no cache"));
  written["embedding.cache.memory"] = "job.yaml:2";  // 0: turned off
  EXPECT_THAT(refusal_of(embedding, written), Not(HasSubstr("eviction")));
}

TEST(TrainConfig, ABoundThatGrowsBelongsToHybrid) {
  TrainConfig train;
  train.staleness_factor = 0.25;
  EXPECT_THAT(refusal_of(train, "train.staleness_schedule"), Not(HasSubstr("staleness")));
  EXPECT_EQ(train.staleness_bound().at(16), 1);
  EXPECT_EQ(train.staleness_bound().max(), 4);
  train.staleness_factor = TrainConfig().staleness_factor;
  for (const char* mode : {"sync", "async"}) {
    train.mode = mode;
    EXPECT_THAT(refusal_of(train, "train.staleness_schedule"),
                HasSubstr("job.yaml:1: train.staleness_schedule: mode " + train.mode));
    EXPECT_THAT(refusal_of(train, "train.mode"), Not(HasSubstr("staleness")));  // the default
  }
}

TEST(TrainConfig, AFactorBelongsToAScheduleThatHasOne) {
  TrainConfig train;
  train.staleness_schedule = "constant";
  EXPECT_EQ(train.staleness_bound().at(1), 4);
  train.staleness_factor = 0.25;
  EXPECT_THAT(refusal_of(train, "train.staleness_factor"),
              HasSubstr("train.staleness_factor: only schedule sqrt of hybrid has a"));
  train.staleness_schedule = "sqrt";  // the default
  for (const char* mode : {"sync", "async"}) {
    train.mode = mode;
    EXPECT_THAT(refusal_of(train, "train.staleness_factor"), HasSubstr("train.staleness_factor"));
  }
  train.mode = "sync";
  train.staleness_schedule = "constant";
  EXPECT_THAT(refusal_of(train, "train.staleness_schedule"), HasSubstr("train.staleness_factor"));
  train.staleness_factor = 0.5;  // as in the config.yaml of an older run
  EXPECT_THAT(refusal_of(train, "train.staleness_schedule"), Not(HasSubstr("staleness")));
}

TEST(TrainConfig, TheDefaultBoundIsThatOfSyncForTheFirstSteps) {
  const TrainConfig train;
  EXPECT_EQ(train.staleness_bound().at(63), 0);
  EXPECT_EQ(train.staleness_bound().at(64), 1);
  EXPECT_EQ(train.staleness_bound().at(100'000), 4);
}

TEST(EmbeddingConfig, RanksOfSeveralNodesKeepCopiesUnlessTheConfigurationSaysOtherwise) {
  ClusterConfig one, one_node, two_nodes;
  one_node.num_ranks = one_node.num_local_ranks = 4;
  two_nodes.num_ranks = 4;
  two_nodes.num_local_ranks = 2;
  EmbeddingConfig embedding;
  embedding.store = "ps";
  CacheConfig& cache = embedding.cache;
  EXPECT_FALSE(embedding.keeps_copies(two_nodes));  // there is none
  cache.memory = "1MiB";
  EXPECT_FALSE(embedding.keeps_copies(one));
  EXPECT_FALSE(embedding.keeps_copies(one_node));
  EXPECT_TRUE(embedding.keeps_copies(two_nodes));
  cache.policy = "exclusive";
  EXPECT_FALSE(embedding.keeps_copies(two_nodes));
  cache.policy = "shared";
  EXPECT_TRUE(embedding.keeps_copies(one));
  cache.memory = "0";
  EXPECT_FALSE(embedding.keeps_copies(one));
}

}  // namespace
}  // namespace satrap::job
