#include "satrap/job/published_job.h"

#include <atomic>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/thread_group.h"
#include "satrap/net/file_rendezvous.h"
#include "satrap/net/net_error.h"
#include "tests/job/tiny_job.h"
#include "tests/support/temporary_directory.h"

namespace satrap::job {
namespace {

TEST(PublishedJob, IsWaitedForAndIsTheSame) {
  const TemporaryDirectory folder;
  net::FileRendezvous store(folder.path());
  const std::atomic<bool> stop = false;
  JobConfig found;
  std::thread shard = start_thread("shard", [&] { found = wait_for_job(store, stop); });
  const JobConfig job = tiny_job("runs/a 'name'");
  publish_job(job, store);
  shard.join();
  EXPECT_EQ(dump_config(found), dump_config(job));
}

TEST(PublishedJob, StopEndsTheWait) {
  const TemporaryDirectory folder;
  net::FileRendezvous store(folder.path());
  const std::atomic<bool> stop = true;
  try {
    wait_for_job(store, stop);
    FAIL();
  } catch (const net::NetError& error) {
    EXPECT_EQ(error.failure(), net::NetFailure::kStopped);
  }
}

TEST(PublishedJob, IsRefusedWhereItIsTooLargeForAStore) {
  const TemporaryDirectory folder;
  net::FileRendezvous store(folder.path());
  JobConfig job = tiny_job("run");
  job.run_dir = std::string(net::Rendezvous::kMaxValueBytes, 'x');
  try {
    publish_job(job, store);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("bytes of configuration"));
  }
}

}  // namespace
}  // namespace satrap::job
