#include "satrap/core/bounded_queue.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace satrap {
namespace {

TEST(BoundedQueue, IsFirstInFirstOut) {
  BoundedQueue<int> queue(3);
  for (const int item : {1, 2, 3}) EXPECT_TRUE(queue.push(item));
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.try_pop(), 2);
  EXPECT_EQ(queue.pop(), 3);
  EXPECT_EQ(queue.try_pop(), std::nullopt);
}

TEST(BoundedQueue, TakesItemsThatCanOnlyBeMoved) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  queue.push(std::make_unique<int>(5));
  EXPECT_EQ(**queue.pop(), 5);
}

TEST(BoundedQueue, ProducerWaitsWhileItIsFull) {
  BoundedQueue<int> queue(2);
  std::atomic<int> num_popped{0};
  std::jthread producer([&] {
    for (int item = 0; item < 1000; ++item) {
      EXPECT_TRUE(queue.push(item));
      // Items are counted after their pop: one more may be popped but not counted yet.
      EXPECT_LE(item + 1 - num_popped, 2 + 1);
    }
    queue.close();
  });
  int expected = 0;
  while (const auto item = queue.pop()) {
    ++num_popped;
    EXPECT_EQ(*item, expected++);
    EXPECT_LE(queue.size(), 2u);
  }
  EXPECT_EQ(expected, 1000);
}

TEST(BoundedQueue, CloseLetsConsumersDrainAndRefusesProducers) {
  BoundedQueue<int> queue(4);
  queue.push(1);
  queue.push(2);
  queue.close();
  EXPECT_FALSE(queue.push(3));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), std::nullopt);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, CloseWakesWhoeverWaits) {
  BoundedQueue<int> full(1);
  full.push(1);
  BoundedQueue<int> empty(1);
  std::jthread producer([&] { EXPECT_FALSE(full.push(2)); });
  std::jthread consumer([&] { EXPECT_EQ(empty.pop(), std::nullopt); });
  full.close();
  empty.close();
}

TEST(BoundedQueue, ManyProducersAndConsumersLoseNothing) {
  BoundedQueue<int> queue(3);
  std::atomic<int> sum{0};
  std::vector<std::jthread> consumers;
  for (int c = 0; c < 3; ++c) {
    consumers.emplace_back([&] {
      while (const auto item = queue.pop()) sum += *item;
    });
  }
  {
    std::vector<std::jthread> producers;
    for (int p = 0; p < 3; ++p) {
      producers.emplace_back([&] {
        for (int item = 1; item <= 1000; ++item) queue.push(item);
      });
    }
  }
  queue.close();
  consumers.clear();
  EXPECT_EQ(sum, 3 * 500'500);
}

}  // namespace
}  // namespace satrap
