#include "tests/support/simt/executor.h"

#include <numeric>
#include <set>
#include <vector>

#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

void run(unsigned blocks,
         unsigned threads,
         const std::function<void()>& kernel,
         std::size_t shared_bytes = 0) {
  simt::launch({.grid = blocks, .block = threads, .shared_bytes = shared_bytes}, kernel);
}

/// Runs `check` in the order of lanes and with several seeds.
template <class Check>
void for_schedules(Check check) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    simt::set_seed(seed);
    check();
  }
  simt::set_seed(0);
}

unsigned global_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

TEST(SimtLaunch, EveryThreadOfTheGridRunsOnce) {
  for_schedules([] {
    std::vector<int> count(3 * 40);
    run(3, 40, [&] { ++count[global_thread()]; });
    EXPECT_EQ(count, std::vector<int>(120, 1));
  });
}

TEST(SimtLaunch, GridStrideLoopCoversAll) {
  for_schedules([] {
    std::vector<int> count(1000);
    run(2, 64, [&] {
      for (unsigned i = global_thread(); i < 1000; i += gridDim.x * blockDim.x) ++count[i];
    });
    EXPECT_EQ(count, std::vector<int>(1000, 1));
  });
}

TEST(SimtLaunch, SeedsGiveDifferentOrdersAndRepeatThem) {
  const auto order = [](std::uint64_t seed) {
    simt::set_seed(seed);
    std::vector<unsigned> result;
    run(2, 64, [&] { result.push_back(global_thread()); });
    simt::set_seed(0);
    return result;
  };
  std::vector<unsigned> ascending(128);
  std::iota(ascending.begin(), ascending.end(), 0U);
  EXPECT_EQ(order(0), ascending);
  EXPECT_NE(order(1), ascending);
  EXPECT_NE(order(1), order(2));
  EXPECT_EQ(order(1), order(1));
}

TEST(SimtWarp, ShufflesReadTheLaneTheyName) {
  for_schedules([] {
    run(1, 32, [] {
      const int lane = static_cast<int>(threadIdx.x);
      const auto full = simt::kFullMask;
      if (__shfl_sync(full, lane * 10, 5) != 50) __trap();
      if (__shfl_sync(full, lane, 1, 8) != (lane & ~7) + 1) __trap();
      if (__shfl_xor_sync(full, lane, 3) != (lane ^ 3)) __trap();
      if (__shfl_up_sync(full, lane, 1, 16) != (lane % 16 == 0 ? lane : lane - 1)) __trap();
      if (__shfl_down_sync(full, lane, 2) != (lane >= 30 ? lane : lane + 2)) __trap();
      const double d = __shfl_sync(full, 0.5 * lane, 31);
      if (d != 15.5) __trap();
    });
  });
}

TEST(SimtWarp, VotesMatchesAndReductions) {
  for_schedules([] {
    run(1, 32, [] {
      const unsigned lane = threadIdx.x;
      const auto full = simt::kFullMask;
      if (__ballot_sync(full, lane % 4 == 0) != 0x11111111U) __trap();
      if (__any_sync(full, lane == 9) == 0 || __any_sync(full, 0) != 0) __trap();
      if (__all_sync(full, 1) == 0 || __all_sync(full, lane != 9) != 0) __trap();
      if (__match_any_sync(full, lane / 8) != 0xFFU << (lane / 8 * 8)) __trap();
      if (__reduce_add_sync(full, lane) != 496) __trap();
      if (__reduce_min_sync(full, lane + 3) != 3 || __reduce_max_sync(full, lane) != 31) __trap();
      if (__reduce_or_sync(full, 1U << lane) != full) __trap();
      if (__reduce_and_sync(full, ~(1U << lane)) != 0) __trap();
    });
  });
}

TEST(SimtWarp, PartsOfAWarpMeetOnTheirOwn) {
  for_schedules([] {
    run(1, 32, [] {
      const unsigned part = threadIdx.x / 8;
      const std::uint32_t mask = 0xFFU << (part * 8);
      unsigned sum = 0;
      for (unsigned i = 0; i <= part; ++i) sum += __reduce_add_sync(mask, 1U);
      if (sum != 8 * (part + 1)) __trap();
    });
  });
}

TEST(SimtWarp, LastWarpMayBePartial) {
  run(1, 40, [] {
    const std::uint32_t mask = threadIdx.x < 32 ? simt::kFullMask : 0xFFU;
    if (__reduce_add_sync(mask, 1U) != (threadIdx.x < 32 ? 32U : 8U)) __trap();
  });
}

TEST(SimtBlock, BarrierSeparatesWritesFromReads) {
  for_schedules([] {
    run(2, 96, [] {
      static __shared__ unsigned s[96];
      s[threadIdx.x] = threadIdx.x;
      __syncthreads();
      if (s[95 - threadIdx.x] != 95 - threadIdx.x) __trap();
      if (__syncthreads_count(threadIdx.x % 3 == 0) != 32) __trap();
    });
  });
}

TEST(SimtBlock, WithoutTheBarrierSomeScheduleShowsIt) {
  std::set<bool> outcomes;
  for_schedules([&] {
    bool right = true;
    run(1, 64, [&] {
      static __shared__ unsigned s[64];
      s[threadIdx.x] = ~0U;
      __syncthreads();
      s[threadIdx.x] = threadIdx.x;
      right = right && s[63 - threadIdx.x] == 63 - threadIdx.x;
    });
    outcomes.insert(right);
  });
  EXPECT_TRUE(outcomes.contains(false));
}

TEST(SimtAtomics, AddLosesNothingButReadAndWriteDo) {
  bool lost = false;
  for_schedules([&] {
    unsigned atomic = 0, plain = 0, turn = 0;
    run(2, 64, [&] {
      atomicAdd(&atomic, 1U);
      const unsigned seen = plain;
      atomicAdd(&turn, 1U);  // another lane may run here
      plain = seen + 1;
    });
    EXPECT_EQ(atomic, 128);
    lost = lost || plain != 128;
  });
  EXPECT_TRUE(lost);
}

TEST(SimtAtomics, ExchangeAndCompare) {
  unsigned long long owner = ~0ULL, wins = 0;
  simt::set_seed(3);
  run(1, 64, [&] {
    if (atomicCAS(&owner, ~0ULL, threadIdx.x) == ~0ULL) atomicAdd(&wins, 1ULL);
  });
  simt::set_seed(0);
  EXPECT_EQ(wins, 1);
  EXPECT_LT(owner, 64);
}

TEST(SimtFault, DivergentMasksAreReported) {
  EXPECT_THAT(
      [] { run(1, 32, [] { __ballot_sync(threadIdx.x < 16 ? 0x1FFFFU : simt::kFullMask, 1); }); },
      ThrowsMessage<simt::Fault>(HasSubstr("while lanes wait in __ballot_sync")));
}

TEST(SimtFault, DifferentCollectivesAreReported) {
  EXPECT_THAT(
      [] {
        run(1, 32, [] {
          if (threadIdx.x < 16) {
            __syncwarp();
          } else {
            __ballot_sync(simt::kFullMask, 1);
          }
        });
      },
      ThrowsMessage<simt::Fault>(HasSubstr("__ballot_sync with mask 0xffffffff, while lanes wait "
                                           "in __syncwarp")));
}

TEST(SimtFault, MaskWithoutItsCallerIsReported) {
  EXPECT_THAT([] { run(1, 32, [] { __syncwarp(0xFFFFU); }); },
              ThrowsMessage<simt::Fault>(HasSubstr("leaves out its caller")));
}

TEST(SimtFault, ShuffleFromOutsideOfTheMaskIsReported) {
  EXPECT_THAT(
      [] { run(1, 32, [] { __shfl_sync(threadIdx.x < 16 ? 0xFFFFU : 0xFFFF0000U, 1, 0); }); },
      ThrowsMessage<simt::Fault>(HasSubstr("reads a lane that is not in its mask")));
}

TEST(SimtFault, CollectiveWithALaneThatEndedIsReported) {
  for_schedules([] {
    EXPECT_THAT(
        [] {
          run(1, 32, [] {
            if (threadIdx.x == 7) return;
            __syncwarp();
          });
        },
        ThrowsMessage<simt::Fault>(HasSubstr("ended")));
  });
}

TEST(SimtFault, BarrierThatALaneMissesIsReported) {
  for_schedules([] {
    EXPECT_THAT(
        [] {
          run(1, 64, [] {
            if (threadIdx.x == 40) return;
            __syncthreads();
          });
        },
        ThrowsMessage<simt::Fault>(HasSubstr("__syncthreads")));
  });
}

TEST(SimtFault, BarriersAtDifferentPlacesAreReported) {
  const auto two_barriers = [] {
    if (threadIdx.x < 32) {
      __syncthreads();
      return;
    }
    __syncthreads();
  };
  EXPECT_THAT([&] { run(1, 64, two_barriers); },
              ThrowsMessage<simt::Fault>(HasSubstr("while other lanes wait in the one at")));
}

TEST(SimtFault, BarrierAgainstCollectiveIsReportedAsStuck) {
  EXPECT_THAT(
      [] {
        run(1, 32, [] {
          if (threadIdx.x < 16) {
            __syncthreads();
          } else {
            __syncwarp();
          }
        });
      },
      ThrowsMessage<simt::Fault>(HasSubstr("waits for ever in __sync")));
}

TEST(SimtFault, WriteBehindDynamicSharedMemoryIsReported) {
  const auto write = [](std::size_t at) {
    run(1, 32, [at] { simt::dynamic_shared()[at] = std::byte{1}; }, 64);
  };
  EXPECT_NO_THROW(write(63));
  EXPECT_THAT([&] { write(64); }, ThrowsMessage<simt::Fault>(HasSubstr("64 bytes of dynamic")));
}

#if defined(__SANITIZE_ADDRESS__)
TEST(SimtFaultDeathTest, WriteBehindStaticSharedMemoryIsReported) {
  const auto write = [](unsigned at) {
    run(1, 32, [at] {
      static __shared__ float s[32];
      atomicAdd(s + threadIdx.x + at, 1.0F);
    });
  };
  EXPECT_NO_THROW(write(0));
  // UBSan of newer compilers knows the size of the array and reports first.
  EXPECT_DEATH(write(1), "global-buffer-overflow|insufficient space");
}
#endif

TEST(SimtFault, DynamicSharedMemoryStartsAsNan) {
  run(
      2, 32,
      [] {
        const float x = reinterpret_cast<float*>(simt::dynamic_shared())[threadIdx.x];
        if (!std::isnan(x)) __trap();
        reinterpret_cast<float*>(simt::dynamic_shared())[threadIdx.x] = 1.0F;
      },
      128);
}

TEST(SimtFault, LaunchAfterAFaultIsFine) {
  EXPECT_THROW(run(1, 64, [] { __trap(); }), simt::Fault);
  int count = 0;
  run(1, 64, [&] {
    __syncthreads();
    ++count;
  });
  EXPECT_EQ(count, 64);
}

}  // namespace
