#include "satrap/job/cluster_config.h"

#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::job {
namespace {

TEST(ClusterConfig, WithoutVariablesIsOneProcess) {
  const ClusterConfig config = ClusterConfig::from([](const std::string&) { return std::nullopt; });
  EXPECT_EQ(config.rank, 0);
  EXPECT_EQ(config.num_ranks, 1);
  EXPECT_EQ(config.num_local_ranks, 0);
  EXPECT_EQ(config.local_rank, std::nullopt);
  EXPECT_EQ(config.num_shards, 0);
  EXPECT_EQ(config.store, "");
}

TEST(ClusterConfig, ReadsTheVariablesOfTorchrun) {
  const std::map<std::string, std::string> variables = {{"RANK", "3"},
                                                        {"WORLD_SIZE", "8"},
                                                        {"LOCAL_WORLD_SIZE", "2"},
                                                        {"LOCAL_RANK", "1"},
                                                        {"TORCHELASTIC_RUN_ID", "abc"},
                                                        {"TORCHELASTIC_RESTART_COUNT", "2"},
                                                        {"SATRAP_STORE", "file:///x"},
                                                        {"SATRAP_SHARDS", "4"}};
  const auto lookup = [&](const std::string& name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  };
  const ClusterConfig config = ClusterConfig::from(lookup);
  EXPECT_EQ(config.rank, 3);
  EXPECT_EQ(config.num_ranks, 8);
  EXPECT_EQ(config.num_local_ranks, 2);
  EXPECT_EQ(config.local_rank, 1);
  EXPECT_EQ(config.num_shards, 4);
  EXPECT_EQ(config.job, "job-abc/attempt-2/");
}

TEST(ClusterConfig, RefusesNumbersThatAreNone) {
  const auto with = [](const std::string& name, const std::string& value) {
    return ClusterConfig::from([=](const std::string& asked) -> std::optional<std::string> {
      return asked == name ? std::optional(value) : std::nullopt;
    });
  };
  EXPECT_THROW(with("RANK", "one"), Error);
  EXPECT_THROW(with("RANK", "-1"), Error);
  EXPECT_THROW(with("RANK", "1"), Error);        // of 1
  EXPECT_THROW(with("WORLD_SIZE", "2"), Error);  // no store
  EXPECT_THROW(with("WORLD_SIZE", "0"), Error);
  EXPECT_THROW(with("LOCAL_RANK", "1"), Error);  // of 1
  EXPECT_THROW(with("LOCAL_RANK", "-1"), Error);
  EXPECT_EQ(with("LOCAL_RANK", "0").local_rank, 0);
  EXPECT_EQ(with("HOME", "x").num_ranks, 1);
}

}  // namespace
}  // namespace satrap::job
