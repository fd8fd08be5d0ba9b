#include "src/net/buffer_pool.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace satrap::net {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

TEST(BufferPool, GivesTheSameMemoryAgain) {
  BufferPool pool;
  PooledMemory first = pool.take(300 * kMiB);
  const std::byte* data = first.data();
  EXPECT_EQ(first.capacity(), 512 * kMiB);
  pool.give_back(std::move(first));
  EXPECT_EQ(pool.take(512 * kMiB).data(), data);
}

TEST(BufferPool, KeepsNoMoreThanWasInUseAtOnce) {
  BufferPool pool;
  for (int round = 0; round < 3; ++round) {
    std::vector<PooledMemory> taken;
    for (int i = 0; i < 4; ++i) taken.push_back(pool.take(kMiB));
    for (PooledMemory& memory : taken) pool.give_back(std::move(memory));
    EXPECT_EQ(pool.kept_bytes(), 4 * kMiB);
  }
}

TEST(BufferPool, OtherSizesTakeThePlaceOfThoseNobodyWants) {
  BufferPool pool;
  pool.give_back(pool.take(8 * kMiB));
  PooledMemory small = pool.take(kMiB);
  const std::byte* data = small.data();
  pool.give_back(std::move(small));  // 8 + 1 were never in use at the same time
  EXPECT_EQ(pool.kept_bytes(), kMiB);
  EXPECT_EQ(pool.take(kMiB).data(), data);
}

TEST(BufferPool, MoreThanThereIsThrowsAndIsForgotten) {
  BufferPool pool;
  EXPECT_THROW(pool.take(BufferPool::kMaxBytes + 1), std::bad_alloc);
  pool.give_back(pool.take(kMiB));
  EXPECT_EQ(pool.kept_bytes(), kMiB);
}

}  // namespace
}  // namespace satrap::net
