#include "src/pipeline/gpu_of_rank.h"

#include <cstdint>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::pipeline {
namespace {

using testing::HasSubstr;

job::ClusterConfig ranks(std::int64_t rank,
                         std::int64_t num_ranks,
                         std::int64_t num_local_ranks,
                         std::optional<std::int64_t> local_rank) {
  job::ClusterConfig cluster;
  cluster.rank = rank;
  cluster.num_ranks = num_ranks;
  cluster.num_local_ranks = num_local_ranks;
  cluster.local_rank = local_rank;
  return cluster;
}

TEST(GpuOfRank, OneProcessTakesTheFirst) {
  EXPECT_EQ(gpu_of_rank({}, 1), 0);
  EXPECT_EQ(gpu_of_rank({}, 8), 0);
}

TEST(GpuOfRank, IsTheLocalRank) {
  EXPECT_EQ(gpu_of_rank(ranks(5, 8, 4, 1), 4), 1);
  EXPECT_EQ(gpu_of_rank(ranks(5, 8, 4, 2), 4), 2);  // whatever order the ranks have
  EXPECT_EQ(gpu_of_rank(ranks(1, 2, 0, 0), 2), 0);
}

TEST(GpuOfRank, WithoutALocalRankTheRanksOfANodeFollowEachOther) {
  EXPECT_EQ(gpu_of_rank(ranks(5, 8, 4, std::nullopt), 4), 1);
  EXPECT_EQ(gpu_of_rank(ranks(3, 4, 0, std::nullopt), 4), 3);  // all on one node
}

TEST(GpuOfRank, ASingleGpuIsSharedOrEachSeesItsOwn) {
  EXPECT_EQ(gpu_of_rank(ranks(3, 4, 4, 3), 1), 0);
  EXPECT_EQ(gpu_of_rank(ranks(3, 4, 4, std::nullopt), 1), 0);
}

TEST(GpuOfRank, MoreRanksThanGpusAreRefused) {
  for (const std::optional<std::int64_t> local : {std::optional<std::int64_t>(2), {}}) {
    EXPECT_EQ(gpu_of_rank(ranks(1, 3, 3, local ? 1 : local), 2), 1);
    try {
      gpu_of_rank(ranks(2, 3, 3, local), 2);
      FAIL() << "rank 2 of 3 has a GPU";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.what(), HasSubstr("2 GPUs for 3 ranks; start at most 2 there"));
    }
  }
}

}  // namespace
}  // namespace satrap::pipeline
