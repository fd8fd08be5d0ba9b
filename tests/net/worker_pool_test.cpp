#include "src/net/worker_pool.h"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/net/deadline.h"

namespace satrap::net {
namespace {

bool is_ready(const std::future<void>& future) {
  return future.wait_for(std::chrono::minutes(1)) == std::future_status::ready;
}

TEST(WorkerPool, OneThreadRunsTasksInTheOrderOfArrival) {
  std::vector<int> order;
  std::promise<void> done;
  {
    WorkerPool pool(1);
    for (int i = 0; i < 100; ++i) pool.run([&order, i] { order.push_back(i); });
    pool.run([&] { done.set_value(); });
    ASSERT_TRUE(is_ready(done.get_future()));
  }
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(WorkerPool, AsManyTasksRunAtATimeAsThereAreThreads) {
  std::promise<void> all_here;
  const std::shared_future<void> released = all_here.get_future().share();
  std::atomic<int> num_here{0}, num_met{0};
  std::promise<void> done;
  WorkerPool pool(3);
  for (int i = 0; i < 3; ++i) {
    pool.run([&] {
      if (++num_here == 3) all_here.set_value();
      if (released.wait_for(std::chrono::minutes(1)) == std::future_status::ready) ++num_met;
      if (--num_here == 0) done.set_value();
    });
  }
  ASSERT_TRUE(is_ready(done.get_future()));
  EXPECT_EQ(num_met, 3);
}

TEST(WorkerPool, ATaskMayAddTasks) {
  std::promise<void> done;
  WorkerPool pool(2);
  pool.run([&] { pool.run([&] { pool.run([&] { done.set_value(); }); }); });
  EXPECT_TRUE(is_ready(done.get_future()));
}

TEST(WorkerPool, ForgetsATaskOnceItHasRun) {
  WorkerPool pool(1);
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  pool.run([held = std::move(held)] {});
  const Deadline deadline = Deadline::after_ms(60'000);
  while (!watched.expired()) {
    ASSERT_FALSE(deadline.has_passed()) << "an idle worker holds what its last task held";
    std::this_thread::yield();
  }
}

TEST(WorkerPool, DropsTasksThatHaveNotStarted) {
  bool has_run = false;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  {
    WorkerPool nobody(0);
    nobody.run([&has_run, held = std::move(held)] { has_run = true; });
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_FALSE(has_run);
  EXPECT_TRUE(watched.expired());
}

TEST(WorkerPool, EndsThoughItsTasksNeverDo) {
  std::promise<void> started;
  std::atomic<int> times{0};
  WorkerPool* target = nullptr;
  const std::function<void()> again = [&] {
    if (++times == 10) started.set_value();
    target->run(again);
  };
  {
    WorkerPool pool(2);
    target = &pool;
    pool.run(again);
    ASSERT_TRUE(is_ready(started.get_future()));
  }
  EXPECT_GE(times, 10);
}

}  // namespace
}  // namespace satrap::net
