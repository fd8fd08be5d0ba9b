#include <limits>
#include <set>
#include <thread>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "tests/support/simt/counts.h"

namespace {

struct Streams {
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
  Streams() {
    cudaStreamCreateWithPriority(&first, 0, 0);
    cudaStreamCreateWithPriority(&second, 0, 0);
    cudaEventCreateWithFlags(&event, 0);
  }
  ~Streams() {
    cudaEventDestroy(event);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
  }
};

/// Writes on one stream, reads on another; returns what was read under several seeds.
std::set<int> read_across_streams(bool with_wait) {
  std::set<int> seen;
  for (std::uint64_t seed = 1; seed < 16; ++seed) {
    simt::set_seed(seed);
    Streams s;
    int value = 0, read = -1;
    simt::enqueue(s.first, [&] { value = 1; });
    cudaEventRecord(s.event, s.first);
    if (with_wait) cudaStreamWaitEvent(s.second, s.event);
    simt::enqueue(s.second, [&] { read = value; });
    cudaDeviceSynchronize();
    seen.insert(read);
  }
  simt::set_seed(0);
  return seen;
}

TEST(SimtStreams, EventOrdersStreams) { EXPECT_EQ(read_across_streams(true), std::set<int>{1}); }

TEST(SimtStreams, WithoutTheWaitSomeScheduleShowsIt) {
  EXPECT_EQ(read_across_streams(false), (std::set<int>{0, 1}));
}

TEST(SimtStreams, WorkRunsWhenSomebodyWaits) {
  Streams s;
  int value = 0;
  simt::enqueue(s.first, [&] { value = 1; });
  EXPECT_EQ(value, 0);
  cudaStreamSynchronize(s.first);
  EXPECT_EQ(value, 1);
}

TEST(SimtMemory, OnlyWholePagesAreRegisteredAndEachOnce) {
  alignas(4096) static std::byte pages[3 * 4096];
  EXPECT_EQ(cudaHostRegister(pages + 64, 4096, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostRegister(pages, 64, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostRegister(pages + 4096, 4096, 0), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(pages, sizeof(pages), 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostRegister(pages + 4096, 8192, 0), cudaErrorHostMemoryAlreadyRegistered);
  void* address = nullptr;
  EXPECT_EQ(cudaHostGetDevicePointer(&address, pages + 4096, 0), cudaSuccess);
  EXPECT_EQ(address, pages + 4096);
  EXPECT_EQ(cudaHostGetDevicePointer(&address, pages, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostUnregister(pages), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaHostUnregister(pages + 4096), cudaSuccess);
  EXPECT_EQ(cudaHostGetDevicePointer(&address, pages + 4096, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST(SimtStreams, AfterAFaultEveryWaitIsTold) {
  {
    Streams s;
    simt::enqueue(s.first, [] { throw simt::Fault("broken"); });
    bool has_run = false;
    simt::enqueue(s.second, [&] { has_run = true; });
    cudaEventRecord(s.event, s.first);
    const auto is_told = testing::ThrowsMessage<simt::Fault>("broken");
    EXPECT_THAT([&] { cudaStreamSynchronize(s.first); }, is_told);
    EXPECT_THAT([&] { cudaStreamSynchronize(s.second); }, is_told);
    EXPECT_THAT([&] { cudaEventSynchronize(s.event); }, is_told);
    EXPECT_THAT([&] { cudaEventQuery(s.event); }, is_told);
    EXPECT_THAT([] { cudaDeviceSynchronize(); }, is_told);
    EXPECT_FALSE(has_run);
  }
  Streams s;
  EXPECT_EQ(cudaStreamSynchronize(s.first), cudaSuccess);
}

TEST(SimtStreams, WaitsAreCountedByThread) {
  Streams s;
  std::thread([&] {
    pthread_setname_np(pthread_self(), "waiter");
    cudaStreamSynchronize(s.first);
    cudaEventSynchronize(s.event);
    cudaEventQuery(s.event);  // does not wait
  }).join();
  EXPECT_THAT(simt::counts().json(), testing::HasSubstr("\"waiter\": 2"));
}

TEST(SimtMemory, CountsWhatIsAllocatedAndRefusesMoreThanItHas) {
  const std::size_t before = simt::allocated_bytes();
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 1000), cudaSuccess);
  EXPECT_EQ(simt::allocated_bytes(), before + 1000);
  void* too_much = nullptr;
  EXPECT_EQ(cudaMalloc(&too_much, std::size_t{1} << 40), cudaErrorMemoryAllocation);
  cudaFree(memory);
  EXPECT_EQ(simt::allocated_bytes(), before);
}

TEST(SimtFloats, HalfRoundsToNearestEven) {
  const auto half = [](float x) { return __half_as_ushort(__float2half_rn(x)); };
  EXPECT_EQ(half(1.0F), 0x3C00);
  EXPECT_EQ(half(-2.0F), 0xC000);
  EXPECT_EQ(half(65504.0F), 0x7BFF);
  EXPECT_EQ(half(65519.9F), 0x7BFF);
  EXPECT_EQ(half(65520.0F), 0x7C00);
  EXPECT_EQ(half(1.0F + 0x1.0p-11F), 0x3C00);      // half way: to even
  EXPECT_EQ(half(1.0F + 3 * 0x1.0p-11F), 0x3C02);  // half way: to even
  EXPECT_EQ(half(0x1.0p-24F), 0x0001);
  EXPECT_EQ(half(0x1.0p-25F), 0x0000);
  EXPECT_EQ(half(std::numeric_limits<float>::quiet_NaN()), 0x7FFF);
}

TEST(SimtFloats, HalfSurvivesTheRoundTrip) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float x = __half2float(__ushort_as_half(static_cast<std::uint16_t>(bits)));
    if (std::isnan(x)) continue;
    ASSERT_EQ(__half_as_ushort(__float2half_rn(x)), bits);
  }
}

TEST(SimtFloats, Bfloat16RoundsToNearestEven) {
  const auto bf16 = [](float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); };
  EXPECT_EQ(bf16(1.0F), 0x3F80);
  EXPECT_EQ(bf16(1.0F + 0x1.0p-8F), 0x3F80);
  EXPECT_EQ(bf16(1.0F + 3 * 0x1.0p-8F), 0x3F82);
  EXPECT_EQ(bf16(std::numeric_limits<float>::max()), 0x7F80);
}

}  // namespace
