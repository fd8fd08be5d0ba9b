#include "src/embedding/completed_steps.h"

#include <future>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/embedding/blocking_call.h"

namespace satrap::embedding {
namespace {

class CompletedStepsTest : public ::testing::Test {
 protected:
  const std::unique_ptr<backend::Device> device_ = backend::make_host_device();
  const backend::Stream stream_{*device_};
  CompletedSteps steps_{*device_};
};

TEST_F(CompletedStepsTest, AreFoundInTheirOrder) {
  steps_.start_after(2);
  EXPECT_EQ(steps_.newest(), 2);
  steps_.add(3, stream_);
  steps_.add(4, stream_);
  steps_.wait_beyond(3);
  EXPECT_EQ(steps_.newest(), 4);  // the host does at once what is queued
  steps_.add(3, stream_);
  EXPECT_EQ(steps_.newest(), 4);
  steps_.add(5, stream_);
  EXPECT_EQ(steps_.newest(), 5);
}

TEST_F(CompletedStepsTest, AreFoundByAnyThread) {
  constexpr std::int64_t kSteps = 2000;
  std::thread owner([&] {
    for (std::int64_t step = 1; step <= kSteps; ++step) steps_.add(step, stream_);
  });
  const auto find = [&] {
    std::int64_t last = 0;
    while (last < kSteps) {
      steps_.wait_beyond(last);
      const std::int64_t found = steps_.newest();
      EXPECT_GT(found, last);
      last = found;
    }
  };
  std::thread other(find);
  find();
  other.join();
  owner.join();
}

TEST_F(CompletedStepsTest, StoppingEndsTheWait) {
  std::future<std::string> waiting = message_of_blocking([&] { steps_.wait_beyond(0); });
  EXPECT_TRUE(blocks(waiting));
  steps_.stop();
  EXPECT_THAT(result_of(waiting), ::testing::HasSubstr("the cache of rows was stopped"));
}

}  // namespace
}  // namespace satrap::embedding
