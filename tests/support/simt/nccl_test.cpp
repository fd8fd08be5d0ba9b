#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <future>
#include <limits>
#include <set>
#include <span>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include "tests/support/simt/counts.h"
#include "tests/support/simt/nccl_ranks.h"

namespace {

using nccl_ranks::check;
using nccl_ranks::errors_of_ranks;
using nccl_ranks::new_id;
using nccl_ranks::Rank;
using nccl_ranks::run_ranks;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
std::vector<T> values_of(const T* array, std::size_t count) {
  return {array, array + count};
}

void for_each_seed(const std::function<void()>& run) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    simt::set_seed(seed);
    run();
  }
  simt::set_seed(0);
}

// ------------------------------------------------------------------------------------ what it does

TEST(SimtNccl, AllReduceSumsOnEveryRank) {
  for_each_seed([] {
    for (const int num_ranks : {1, 2, 3, 4}) {
      run_ranks(num_ranks, [&](Rank& r) {
        const float mine = static_cast<float>(r.rank + 1);
        float* const from = r.array(std::vector<float>{mine, 10 * mine, 0});
        float* const to = r.array<float>(3);
        check(ncclAllReduce(from, to, 3, ncclFloat32, ncclSum, r.comm, r.stream));
        check(ncclAllReduce(from, from, 2, ncclFloat32, ncclSum, r.comm, r.stream));  // in place
        r.wait();
        const int sum_of_ranks = num_ranks * (num_ranks + 1) / 2;
        const auto sum = static_cast<float>(sum_of_ranks);
        EXPECT_THAT(values_of(to, 3), ElementsAre(sum, 10 * sum, 0));
        EXPECT_THAT(values_of(from, 3), ElementsAre(sum, 10 * sum, 0));
      });
    }
  });
}

template <class T>
void expect_sum(ncclDataType_t type, T one, T other, T sum) {
  run_ranks(2, [&](Rank& r) {
    T* const values = r.array(std::vector<T>{r.rank == 0 ? one : other});
    check(ncclAllReduce(values, values, 1, type, ncclSum, r.comm, r.stream));
    r.wait();
    const auto bytes_of = [](const T& value) { return std::as_bytes(std::span(&value, 1)); };
    EXPECT_TRUE(std::ranges::equal(bytes_of(*values), bytes_of(sum))) << "type " << type;
  });
}

TEST(SimtNccl, SumsAreOfTheType) {
  expect_sum<std::int8_t>(ncclInt8, 100, 100, -56);
  expect_sum<std::uint8_t>(ncclUint8, 200, 100, 44);
  expect_sum<std::int32_t>(ncclInt32, -5, 3, -2);
  expect_sum<std::uint32_t>(ncclUint32, 0xFFFFFFFFU, 2, 1);
  expect_sum<std::int64_t>(ncclInt64, -(std::int64_t{1} << 40), 1, 1 - (std::int64_t{1} << 40));
  expect_sum<std::uint64_t>(ncclUint64, 1, 2, 3);
  expect_sum<double>(ncclFloat64, 0.5, 0x1.0p-40, 0.5 + 0x1.0p-40);
  expect_sum<__half>(ncclFloat16, {0x3C00}, {0x1000}, {0x3C00});          // 1 + 2^-11: to even
  expect_sum<__nv_bfloat16>(ncclBfloat16, {0x3F80}, {0x3F80}, {0x4000});  // 1 + 1
}

TEST(SimtNccl, TheOrderOfASumIsNotThatOfRanksButTheSameOnAll) {
  constexpr float kLarge = 0x1.0p24F;  // + 1 is rounded away
  std::set<std::vector<float>> results;
  for_each_seed([&] {
    std::vector<std::vector<float>> of_ranks(3);
    run_ranks(3, [&](Rank& r) {
      const float mine = r.rank == 0 ? kLarge : r.rank == 1 ? 1.0F : -kLarge;
      float* const values = r.array(std::vector<float>(6, mine));
      check(ncclAllReduce(values, values, 6, ncclFloat32, ncclSum, r.comm, r.stream));
      r.wait();
      of_ranks[static_cast<std::size_t>(r.rank)] = values_of(values, 6);
    });
    EXPECT_THAT(of_ranks, Each(of_ranks[0]));
    EXPECT_THAT(of_ranks[0], testing::Contains(1.0F));  // by ranks all would be 0
    results.insert(of_ranks[0]);
  });
  EXPECT_GT(results.size(), 1U);  // seeds differ
}

TEST(SimtNccl, AllGatherOrdersByRank) {
  for_each_seed([] {
    run_ranks(3, [](Rank& r) {
      int* const all = r.array(std::vector<int>(6, -1));
      int* const mine = all + 2 * r.rank;  // in place
      mine[0] = r.rank;
      mine[1] = 10 * r.rank;
      int* const others = r.array<int>(6);
      check(ncclAllGather(mine, others, 2, ncclInt32, r.comm, r.stream));
      check(ncclAllGather(mine, all, 2, ncclInt32, r.comm, r.stream));
      r.wait();
      EXPECT_THAT(values_of(all, 6), ElementsAre(0, 0, 1, 10, 2, 20));
      EXPECT_THAT(values_of(others, 6), ElementsAre(0, 0, 1, 10, 2, 20));
    });
  });
}

TEST(SimtNccl, AGroupExchangesWithAllRanksInAnyOrder) {
  for_each_seed([] {
    run_ranks(3, [](Rank& r) {
      int* const from = r.array(std::vector<int>{10 * r.rank, 10 * r.rank + 1, 10 * r.rank + 2});
      int* const to = r.array<int>(3);
      check(ncclGroupStart());
      for (int i = 0; i < 3; ++i) {
        const int peer = r.rank == 1 ? 2 - i : (r.rank + i) % 3;
        if (r.rank == 2) check(ncclRecv(to + peer, 1, ncclInt32, peer, r.comm, r.stream));
        check(ncclSend(from + peer, 1, ncclInt32, peer, r.comm, r.stream));
        if (r.rank != 2) check(ncclRecv(to + peer, 1, ncclInt32, peer, r.comm, r.stream));
      }
      check(ncclGroupEnd());
      r.wait();
      EXPECT_THAT(values_of(to, 3), ElementsAre(r.rank, 10 + r.rank, 20 + r.rank));
    });
  });
}

TEST(SimtNccl, SendsOfAPairStayInOrder) {
  run_ranks(2, [](Rank& r) {
    int* const values = r.array(std::vector<int>{1, 2, 3});
    check(ncclGroupStart());
    for (int i = 0; i < 3; ++i) {
      if (r.rank == 0) check(ncclSend(values + i, 1, ncclInt32, 1, r.comm, r.stream));
      if (r.rank == 1) check(ncclRecv(values + 2 - i, 1, ncclInt32, 0, r.comm, r.stream));
    }
    check(ncclGroupEnd());
    r.wait();
    if (r.rank == 0) return;
    EXPECT_THAT(values_of(values, 3), ElementsAre(3, 2, 1));
  });
}

TEST(SimtNccl, LargeArraysArriveWhole) {
  run_ranks(2, [](Rank& r) {
    constexpr std::size_t kCount = 300'000;
    auto* const values = r.array(std::vector<std::uint64_t>(kCount, 1));
    check(ncclAllReduce(values, values, kCount, ncclUint64, ncclSum, r.comm, r.stream));
    r.wait();
    EXPECT_EQ(values_of(values, kCount), std::vector<std::uint64_t>(kCount, 2));
  });
}

TEST(SimtNccl, TellsWhatItIs) {
  run_ranks(2, [](Rank& r) {
    int version = 0, count = 0, rank = -1, device = -1;
    check(ncclGetVersion(&version));
    check(ncclCommCount(r.comm, &count));
    check(ncclCommUserRank(r.comm, &rank));
    check(ncclCommCuDevice(r.comm, &device));
    EXPECT_EQ(version, NCCL_VERSION_CODE);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(rank, r.rank);
    EXPECT_EQ(device, r.rank);
  });
}

TEST(SimtNccl, CountsOperationsAndTheirBytes) {
  const auto collectives = simt::counts().collectives;
  const auto bytes = simt::counts().collective_bytes;
  run_ranks(2, [](Rank& r) {
    int* const values = r.array(std::vector<int>(4));
    check(ncclAllReduce(values, values, 4, ncclInt32, ncclSum, r.comm, r.stream));
    check(ncclGroupStart());
    check(ncclSend(values, 1, ncclInt32, 1 - r.rank, r.comm, r.stream));
    check(ncclRecv(values + 1, 1, ncclInt32, 1 - r.rank, r.comm, r.stream));
    check(ncclGroupEnd());
    r.wait();
  });
  EXPECT_EQ(simt::counts().collectives - collectives, 4);
  EXPECT_EQ(simt::counts().collective_bytes - bytes, 2 * (16 + 4));
  EXPECT_THAT(simt::counts().json(), HasSubstr("\"collectives\": "));
}

// ------------------------------------------------------------------------------- work of a stream

TEST(SimtNccl, OperationsBlockOnlyTheirStream) {
  std::promise<void> first_has_waited;
  run_ranks(2, [&](Rank& r) {
    float* const values = r.array(std::vector<float>(4, 1.0F));
    cudaStream_t other = nullptr;
    cudaStreamCreateWithPriority(&other, 0, 0);
    if (r.rank == 1) first_has_waited.get_future().wait();
    check(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, r.comm, r.stream));
    bool has_run = false, runs_after = false;
    simt::enqueue(r.stream, [&] { runs_after = values[0] == 2.0F; });
    simt::enqueue(other, [&] { has_run = true; });
    cudaStreamSynchronize(other);
    EXPECT_TRUE(has_run);
    if (r.rank == 0) {
      EXPECT_EQ(cudaStreamQuery(r.stream), cudaErrorNotReady);
      EXPECT_FALSE(runs_after);
      first_has_waited.set_value();
    }
    r.wait();
    EXPECT_TRUE(runs_after);
    cudaStreamDestroy(other);
  });
}

TEST(SimtNccl, ARankDoesItsPartWhileItsProgramWaitsForSomethingElse) {
  std::promise<void> second_has_waited;
  run_ranks(2, [&](Rank& r) {
    float* const values = r.array(std::vector<float>(4, 1.0F));
    simt::enqueue(r.stream, [=] { values[0] = 5.0F; });
    check(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, r.comm, r.stream));
    if (r.rank == 0) second_has_waited.get_future().wait();
    r.wait();
    EXPECT_EQ(values[0], 10.0F);
    if (r.rank == 1) second_has_waited.set_value();
  });
}

TEST(SimtNccl, ASendWaitsForItsReceive) {
  std::promise<void> first_has_looked;
  run_ranks(2, [&](Rank& r) {
    int* const value = r.array(std::vector<int>{7});
    if (r.rank == 0) {
      check(ncclSend(value, 1, ncclInt32, 1, r.comm, r.stream));
      for (int i = 0; i < 100; ++i) EXPECT_EQ(cudaStreamQuery(r.stream), cudaErrorNotReady);
      first_has_looked.set_value();
    } else {
      first_has_looked.get_future().wait();
      check(ncclRecv(value, 1, ncclInt32, 0, r.comm, r.stream));
    }
    r.wait();
  });
}

TEST(SimtNccl, OperationsOfACommunicatorRunInTheOrderOfCalls) {
  for_each_seed([] {
    run_ranks(2, [](Rank& r) {
      cudaStream_t other = nullptr;
      cudaStreamCreateWithPriority(&other, 0, 0);
      float *const one = r.array(std::vector<float>{1}), *const two =
                                                             r.array(std::vector<float>{2});
      check(ncclAllReduce(one, one, 1, ncclFloat32, ncclSum, r.comm, r.stream));
      check(ncclAllReduce(two, two, 1, ncclFloat32, ncclSum, r.comm, other));
      cudaStreamSynchronize(other);
      EXPECT_EQ(cudaStreamQuery(r.stream), cudaSuccess);
      EXPECT_EQ(two[0], 4);
      cudaStreamDestroy(other);
    });
  });
}

TEST(SimtNccl, SeedsDelayIt) {
  std::set<int> numbers;
  for_each_seed([&] {
    run_ranks(1, [&](Rank& r) {
      float* const value = r.array(std::vector<float>{1});
      check(ncclAllReduce(value, value, 1, ncclFloat32, ncclSum, r.comm, r.stream));
      int number = 0;
      while (cudaStreamQuery(r.stream) == cudaErrorNotReady) ++number;
      numbers.insert(number);
    });
  });
  EXPECT_GT(numbers.size(), 2U);
}

TEST(SimtNccl, RacesWithItAreFound) {
  const auto errors = [](bool with_wait) {
    return errors_of_ranks(2, [&](Rank& r) {
      float *const from = r.array(std::vector<float>(4)), *const to = r.array<float>(4);
      cudaStream_t other = nullptr;
      cudaStreamCreateWithPriority(&other, 0, 0);
      cudaEvent_t event = nullptr;
      cudaEventCreateWithFlags(&event, 0);
      check(ncclAllReduce(from, to, 4, ncclFloat32, ncclSum, r.comm, r.stream));
      cudaEventRecord(event, r.stream);
      if (with_wait) cudaStreamWaitEvent(other, event);
      if (r.rank == 1) cudaMemsetAsync(from, 0, 16, other);
      std::string error;
      try {
        r.wait();
        cudaStreamSynchronize(other);
      } catch (const simt::Fault& fault) {
        error = fault.what();
      }
      cudaStreamDestroy(other);
      cudaEventDestroy(event);
      if (!error.empty()) throw simt::Fault(error);
    });
  };
  EXPECT_THAT(errors(true), Each(""));
  EXPECT_THAT(errors(false)[1], AllOf(HasSubstr("race between streams"), HasSubstr("a fill"),
                                      HasSubstr("ncclAllReduce of 4 float32 by rank 1")));
}

// ---------------------------------------------------------------------------------- nonblocking

TEST(SimtNccl, NonblockingCallsEndWhenAskedFor) {
  for_each_seed([] {
    const ncclUniqueId id = new_id();
    const auto errors = nccl_ranks::errors_of_threads(2, [&](int number) {
      Rank r(id, number, 2, number, false);
      float* const values = r.array(std::vector<float>(4, 1.0F));
      r.wait_until_ready();
      EXPECT_EQ(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, r.comm, r.stream),
                ncclInProgress);
      EXPECT_EQ(cudaStreamQuery(r.stream), cudaSuccess);  // not even queued
      EXPECT_EQ(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, r.comm, r.stream),
                ncclInvalidArgument);
      r.wait_until_ready();
      r.wait();
      EXPECT_EQ(values_of(values, 4), std::vector<float>(4, 2.0F));
      EXPECT_EQ(ncclCommFinalize(r.comm), ncclInProgress);
      r.wait_until_ready();
    });
    EXPECT_THAT(errors, Each(""));
  });
}

TEST(SimtNccl, NonblockingRanksJoinInTheBackground) {
  const ncclUniqueId id = new_id();
  Rank first(id, 0, 2, 0, false);
  EXPECT_EQ(first.status(), ncclInProgress);
  float* const value = first.array<float>(1);
  EXPECT_EQ(ncclAllReduce(value, value, 1, ncclFloat32, ncclSum, first.comm, first.stream),
            ncclInvalidArgument);
  Rank second(id, 1, 2, 1, false);
  first.wait_until_ready();
  second.wait_until_ready();
}

TEST(SimtNccl, AbortEndsJoining) {
  Rank first(new_id(), 0, 2, 0, false);
  EXPECT_EQ(first.status(), ncclInProgress);
  check(ncclCommAbort(std::exchange(first.comm, nullptr)));
}

}  // namespace
