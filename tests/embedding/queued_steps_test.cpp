#include "src/embedding/queued_steps.h"

#include <thread>

#include <gtest/gtest.h>

namespace satrap::embedding {
namespace {

class QueuedStepsTest : public ::testing::Test {
 protected:
  const std::unique_ptr<backend::Device> device_ = backend::make_host_device();
  const backend::Stream stream_{*device_};
  QueuedSteps steps_{*device_};
};

TEST_F(QueuedStepsTest, AreDoneInTheirOrder) {
  EXPECT_EQ(steps_.newest_done(), std::nullopt);
  EXPECT_TRUE(steps_.is_empty());
  steps_.wait_for_oldest();  // there is none
  steps_.add(3, stream_);
  EXPECT_FALSE(steps_.is_empty());
  steps_.add(4, stream_);
  steps_.wait_for_oldest();
  EXPECT_EQ(steps_.newest_done(), 4);  // the host does at once what is queued
  EXPECT_TRUE(steps_.is_empty());
  EXPECT_EQ(steps_.newest_done(), 4);
  steps_.add(5, stream_);
  EXPECT_EQ(steps_.newest_done(), 5);
}

TEST_F(QueuedStepsTest, AreFoundByAnyThread) {
  constexpr std::int64_t kSteps = 2000;
  std::thread owner([&] {
    for (std::int64_t step = 1; step <= kSteps; ++step) steps_.add(step, stream_);
  });
  const auto find = [&] {
    std::int64_t last = 0;
    while (last < kSteps) {
      steps_.wait_for_oldest();
      const std::int64_t found = steps_.newest_done().value_or(0);
      EXPECT_GE(found, last);
      last = found;
    }
  };
  std::thread other(find);
  find();
  other.join();
  owner.join();
  EXPECT_TRUE(steps_.is_empty());
}

}  // namespace
}  // namespace satrap::embedding
