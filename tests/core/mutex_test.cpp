#include "satrap/core/mutex.h"

#include <chrono>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

namespace satrap {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What another thread finds; the mutex's own thread may not ask.
bool is_free(Mutex& mutex) {
  bool taken = false;
  std::jthread([&] {
    if (!mutex.try_lock()) return;
    taken = true;
    mutex.unlock();
  }).join();
  return taken;
}

TEST(Mutex, OneThreadAtATimeHoldsIt) {
  Mutex mutex;
  std::int64_t sum = 0;
  {
    const auto add = [&] {
      for (int i = 0; i < 10'000; ++i) {
        const MutexLock lock(mutex);
        ++sum;
      }
    };
    const std::jthread first(add), second(add), third(add);
  }
  EXPECT_EQ(sum, 30'000);
}

TEST(Mutex, TryFailsWhileAnotherThreadHoldsIt) {
  Mutex mutex;
  EXPECT_TRUE(is_free(mutex));
  {
    const MutexLock lock(mutex);
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexLock, GivesTheMutexBackBetweenUnlockAndLock) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    lock.unlock();
    EXPECT_TRUE(is_free(mutex));
    lock.lock();
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
  {
    MutexLock lock(mutex);
    lock.unlock();  // and ends without it
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(CondVar, WaitReturnsAfterANoticeWithTheMutexHeld) {
  Mutex mutex;
  CondVar changed;
  int stage = 0;
  std::jthread other([&] {
    const MutexLock lock(mutex);
    stage = 1;
    changed.notify_one();
    while (stage != 2) changed.wait(mutex);
    stage = 3;
    changed.notify_all();
  });
  const MutexLock lock(mutex);
  while (stage != 1) changed.wait(mutex);
  EXPECT_FALSE(is_free(mutex));
  stage = 2;
  changed.notify_one();
  while (stage != 3) changed.wait(mutex);
}

TEST(CondVar, WaitEndsAtTheDeadlineWithTheMutexHeld) {
  Mutex mutex;
  CondVar changed;
  const MutexLock lock(mutex);
  const auto until = steady_clock::now() + milliseconds(5);
  while (changed.wait_until(mutex, until)) continue;  // no notice comes
  EXPECT_GE(steady_clock::now(), until);
  EXPECT_FALSE(is_free(mutex));
  EXPECT_FALSE(changed.wait_until(mutex, until));  // has passed
}

TEST(CondVar, ANoticeEndsAWaitBeforeItsDeadline) {
  Mutex mutex;
  CondVar changed;
  bool is_done = false;
  std::jthread other([&] {
    const MutexLock lock(mutex);
    is_done = true;
    changed.notify_all();
  });
  const MutexLock lock(mutex);
  const auto until = steady_clock::now() + std::chrono::hours(1);
  while (!is_done && changed.wait_until(mutex, until)) continue;
  EXPECT_TRUE(is_done);
}

TEST(SharedMutex, SeveralThreadsShareItAndOneHoldsItAlone) {
  SharedMutex mutex;
  int num_done = 0;
  std::jthread writer;
  {
    const SharedLock lock(mutex);
    std::jthread([&] { const SharedLock another(mutex); }).join();
    writer = std::jthread([&] {
      const ExclusiveLock alone(mutex);
      ++num_done;
    });
    EXPECT_EQ(num_done, 0);
  }
  writer.join();
  const SharedLock lock(mutex);
  EXPECT_EQ(num_done, 1);
}

}  // namespace
}  // namespace satrap
