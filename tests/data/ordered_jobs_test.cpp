#include "src/data/rows/ordered_jobs.h"

#include <future>
#include <random>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

using Jobs = OrderedJobs<std::int64_t>;

TEST(OrderedJobs, AreNumberedInTheOrderOfAcquiring) {
  Jobs jobs(3);
  std::set<Jobs::Numbered*> distinct;
  for (std::int64_t i = 0; i < 3; ++i) {
    Jobs::Numbered* const job = jobs.acquire();
    EXPECT_EQ(job->number, i);
    distinct.insert(job);
  }
  EXPECT_EQ(distinct.size(), 3U);
}

TEST(OrderedJobs, AreTakenInTheOrderOfNumbersHoweverTheyAreDelivered) {
  Jobs jobs(3);
  Jobs::Numbered* const zero = jobs.acquire();
  Jobs::Numbered* const one = jobs.acquire();
  Jobs::Numbered* const two = jobs.acquire();
  jobs.deliver(two);
  jobs.deliver(zero);
  jobs.deliver(one);
  EXPECT_EQ(jobs.take(), zero);
  EXPECT_EQ(jobs.take(), one);
  EXPECT_EQ(jobs.take(), two);
}

TEST(OrderedJobs, AReleasedJobIsUsedAgainWithItsMemoryAndTheNextNumber) {
  Jobs jobs(1);
  for (std::int64_t i = 0; i < 5; ++i) {
    Jobs::Numbered* const job = jobs.acquire();
    EXPECT_EQ(job->number, i);
    EXPECT_EQ(job->job, i);  // what the last user left
    ++job->job;
    jobs.deliver(job);
    EXPECT_EQ(jobs.take(), job);
    jobs.release(job);
  }
}

TEST(OrderedJobs, TheOneThatIsMissingIsWaitedFor) {
  Jobs jobs(2);
  Jobs::Numbered* const zero = jobs.acquire();
  Jobs::Numbered* const one = jobs.acquire();
  jobs.deliver(one);
  auto taken = std::async(std::launch::async, [&] { return jobs.take(); });
  jobs.deliver(zero);
  EXPECT_EQ(taken.get(), zero);
}

TEST(OrderedJobs, AReleaseEndsTheWaitForAFreeJob) {
  Jobs jobs(1);
  Jobs::Numbered* const only = jobs.acquire();
  auto acquired = std::async(std::launch::async, [&] { return jobs.acquire(); });
  jobs.deliver(only);
  jobs.release(jobs.take());
  EXPECT_EQ(acquired.get(), only);
  EXPECT_EQ(only->number, 1);
}

TEST(OrderedJobs, CloseEndsAllWaits) {
  Jobs jobs(1);
  jobs.acquire();
  auto acquired = std::async(std::launch::async, [&] { return jobs.acquire(); });
  auto taken = std::async(std::launch::async, [&] { return jobs.take(); });
  jobs.close();
  EXPECT_EQ(acquired.get(), nullptr);
  EXPECT_EQ(taken.get(), nullptr);
}

TEST(OrderedJobs, AfterCloseThereIsNothingThoughItIsReady) {
  Jobs jobs(2);
  jobs.deliver(jobs.acquire());
  jobs.close();
  EXPECT_EQ(jobs.take(), nullptr);
  EXPECT_EQ(jobs.acquire(), nullptr);
}

TEST(OrderedJobs, ManyWorkersGiveTheConsumerOneSequence) {
  constexpr std::int64_t kJobs = 4, kNumbers = 3000;
  Jobs jobs(kJobs);
  std::vector<std::thread> workers;
  for (std::uint64_t w = 0; w < 3; ++w) {
    workers.emplace_back([&jobs, w] {
      std::mt19937_64 random(w);
      while (Jobs::Numbered* const job = jobs.acquire()) {
        if (random() % 3 == 0) std::this_thread::yield();
        job->job = job->number * job->number;
        jobs.deliver(job);
      }
    });
  }
  for (std::int64_t i = 0; i < kNumbers; ++i) {
    Jobs::Numbered* const job = jobs.take();
    EXPECT_EQ(job->number, i);
    EXPECT_EQ(job->job, i * i);
    jobs.release(job);
  }
  jobs.close();
  for (std::thread& worker : workers) worker.join();
}

}  // namespace
}  // namespace satrap::data
