#include "src/cli/shard.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/net/file_rendezvous.h"
#include "tests/support/temporary_directory.h"

namespace satrap::cli {
namespace {

using ::testing::HasSubstr;

class ServeShardTest : public testing::Test {
 protected:
  ServeShardTest() {
    config_ = folder_.path() + "/job.yaml";
    std::ofstream(config_) << "run_dir: run\ndata: {format: synthetic}\n";
    options_.cluster.store = "file://" + folder_.path() + "/store";
    options_.cluster.token = "secret";
    options_.num_workers = 1;
    options_.stop = &stop_;
  }

  std::string refusal() {
    try {
      stop_ = true;  // nobody would stop a shard that serves after all
      serve_shard(config_, {}, options_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return error.what();
    }
    return "";
  }

  TemporaryDirectory folder_;
  std::string config_;
  ShardOptions options_;
  std::atomic<bool> stop_{false};
};

TEST_F(ServeShardTest, TheNumberIsOneOfTheShards) {
  const std::pair<std::int64_t, std::int64_t> wrong[] = {{0, 0}, {-1, 2}, {2, 2}, {0, -1}};
  for (const auto& [shard, num_shards] : wrong) {
    options_.shard = shard;
    options_.num_shards = num_shards;
    EXPECT_EQ(refusal(),
              concat("--shard must be from 0 to --shards - 1, got ", shard, " of ", num_shards));
  }
}

TEST_F(ServeShardTest, NeedsAStoreToBeFoundIn) {
  options_.cluster.store = "";
  EXPECT_THAT(refusal(), HasSubstr("SATRAP_STORE"));
}

TEST_F(ServeShardTest, AJobThatIsNoneIsRefused) {
  std::ofstream(config_) << "tabels: {}\n";
  EXPECT_THAT(refusal(), HasSubstr("tabels"));
}

TEST_F(ServeShardTest, ServesUntilItIsStopped) {
  options_.shard = 1;
  options_.num_shards = 2;
  auto served = std::async(std::launch::async, [&] { serve_shard(config_, {}, options_); });
  net::FileRendezvous store(folder_.path() + "/store");
  const net::Deadline deadline = net::Deadline::after_ms(60'000);
  while (!store.get("net/shard/1")) {
    if (served.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) served.get();
    ASSERT_FALSE(deadline.has_passed());
  }
  stop_ = true;
  stop_.notify_all();
  ASSERT_EQ(served.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  served.get();
}

}  // namespace
}  // namespace satrap::cli
