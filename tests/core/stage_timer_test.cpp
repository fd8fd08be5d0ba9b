#include "satrap/core/stage_timer.h"

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace satrap {
namespace {

TEST(StageTimers, AddUpPerStageOverThreads) {
  StageTimers timers(3);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) timers.add(1, std::chrono::microseconds(1));
      });
    }
  }
  timers.add(2, 0.5);
  EXPECT_EQ(timers.seconds(0), 0.0);
  EXPECT_DOUBLE_EQ(timers.seconds(1), 0.004);
  EXPECT_DOUBLE_EQ(timers.seconds(2), 0.5);
}

TEST(ScopedStage, AddsTheTimeOfItsScope) {
  using Clock = std::chrono::steady_clock;
  StageTimers timers(2);
  const Clock::time_point begin = Clock::now();
  {
    const ScopedStage stage(timers, 1);
    while (Clock::now() - begin < std::chrono::milliseconds(2)) {
    }
  }
  const std::chrono::duration<double> whole = Clock::now() - begin;
  EXPECT_EQ(timers.seconds(0), 0.0);
  EXPECT_GT(timers.seconds(1), 0.0);
  EXPECT_LE(timers.seconds(1), whole.count());
}

}  // namespace
}  // namespace satrap
