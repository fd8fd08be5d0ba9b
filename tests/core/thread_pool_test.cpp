#include "satrap/core/thread_pool.h"

#include <atomic>
#include <cstdint>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>

#include "satrap/core/error.h"

namespace satrap {
namespace {

std::string current_thread_name() {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

TEST(ThreadPool, RunsEveryIndexOnce) {
  for (const std::int64_t num_threads : {1, 2, 4}) {
    ThreadPool pool(num_threads);
    EXPECT_EQ(pool.num_threads(), num_threads);
    for (const std::int64_t count : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
      pool.parallel_for(count, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
      for (const std::atomic<int>& num_runs : runs) EXPECT_EQ(num_runs, 1);
    }
  }
}

TEST(ThreadPool, RefusesToHaveNoThread) { EXPECT_THROW(ThreadPool(0), Error); }

TEST(ThreadPool, ThreadsOfThePoolHelpTheCaller) {
  // Three bodies that wait for each other can only end if three threads run them.
  ThreadPool pool(3);
  std::latch all_here(3);
  std::mutex mutex;
  std::set<std::string> names;
  pool.parallel_for(3, [&](std::int64_t) {
    all_here.arrive_and_wait();
    std::lock_guard lock(mutex);
    names.insert(current_thread_name());
  });
  EXPECT_EQ(names, (std::set<std::string>{"pool-0", "pool-1", current_thread_name()}));
}

TEST(ThreadPool, WritesOfTheBodiesAreSeenByTheCaller) {
  ThreadPool pool(4);
  std::vector<std::int64_t> squares(100);
  for (int round = 0; round < 1000; ++round) {
    pool.parallel_for(
        100, [&](std::int64_t i) { squares[static_cast<std::size_t>(i)] = i * i + round; });
    for (std::int64_t i = 0; i < 100; ++i) {
      ASSERT_EQ(squares[static_cast<std::size_t>(i)], i * i + round);
    }
  }
}

TEST(ThreadPool, SeveralCallersShareIt) {
  ThreadPool pool(3);
  std::atomic<std::int64_t> sum{0};
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&] {
        for (int round = 0; round < 500; ++round) {
          std::atomic<std::int64_t> own{0};
          pool.parallel_for(10, [&](std::int64_t i) { own += i; });
          EXPECT_EQ(own, 45);
          sum += own;
        }
      });
    }
  }
  EXPECT_EQ(sum, 4 * 500 * 45);
}

TEST(ThreadPool, ALoopProceedsWhileAnotherIsStuck) {
  // All threads of the pool wait inside the first loop; the second caller works alone.
  ThreadPool pool(2);
  std::latch stuck(2);
  std::latch release(1);
  std::jthread first([&] {
    pool.parallel_for(2, [&](std::int64_t) {
      stuck.count_down();
      release.wait();
    });
  });
  stuck.wait();
  std::atomic<int> runs{0};
  pool.parallel_for(5, [&](std::int64_t) { ++runs; });
  EXPECT_EQ(runs, 5);
  release.count_down();
}

TEST(ThreadPool, RethrowsAfterEveryStartedBodyHasEnded) {
  for (const std::int64_t num_threads : {1, 4}) {
    ThreadPool pool(num_threads);
    std::atomic<int> started{0};
    std::atomic<int> ended{0};
    try {
      pool.parallel_for(1000, [&](std::int64_t i) {
        ++started;
        if (i == 10) {
          ++ended;
          throw std::runtime_error("body 10");
        }
        ++ended;
      });
      FAIL() << "did not throw";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "body 10");
    }
    EXPECT_EQ(started, ended);
    EXPECT_GE(started, 11);

    std::atomic<int> runs{0};  // the pool still works as before
    pool.parallel_for(100, [&](std::int64_t) { ++runs; });
    EXPECT_EQ(runs, 100);
  }
}

TEST(ThreadPool, WhenEveryBodyThrowsOneExceptionArrives) {
  ThreadPool pool(4);
  for (int round = 0; round < 100; ++round) {
    EXPECT_THROW(pool.parallel_for(8, [](std::int64_t) { throw Error(ErrorCode::kIo, "no disk"); }),
                 Error);
  }
}

}  // namespace
}  // namespace satrap
