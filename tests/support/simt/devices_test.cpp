#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/simt/races_kernels.h"

namespace {

using race_kernels::store;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kValues = 64;
constexpr std::size_t kBytes = kValues * sizeof(float);

/// A stream, an event and memory of a device.
struct OnDevice {
  explicit OnDevice(int number) : device(number) {
    cudaSetDevice(device);
    cudaStreamCreateWithPriority(&stream, 0, 0);
    cudaEventCreateWithFlags(&event, 0);
    cudaMalloc(reinterpret_cast<void**>(&values), kBytes);
  }
  ~OnDevice() {
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
    cudaFree(values);
    cudaSetDevice(0);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  int device;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  float* values = nullptr;
};

cudaError_t launch_store(float* values, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.blockDim = 32;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, store, values, 64);
}

TEST(SimtDevices, EachThreadUsesOne) {
  int count = 0, device = -1;
  simt::set_num_devices(3);
  cudaGetDeviceCount(&count);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(cudaSetDevice(2), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(3), cudaErrorInvalidDevice);
  std::thread([&] { cudaGetDevice(&device); }).join();
  EXPECT_EQ(device, 0);
  cudaGetDevice(&device);
  EXPECT_EQ(device, 2);
  simt::set_num_devices(8);
  cudaSetDevice(0);
  cudaGetLastError();
}

TEST(SimtDevices, HaveAddressesOfTheirOwn) {
  std::set<std::string> bus_ids, uuids;
  for (int device = 0; device < 8; ++device) {
    std::array<char, 16> bus_id{};
    ASSERT_EQ(cudaDeviceGetPCIBusId(bus_id.data(), bus_id.size(), device), cudaSuccess);
    bus_ids.insert(bus_id.data());
    cudaDeviceProp properties{};
    cudaGetDeviceProperties(&properties, device);
    uuids.emplace(properties.uuid.bytes, sizeof(properties.uuid.bytes));
  }
  EXPECT_EQ(bus_ids.size(), 8U);
  EXPECT_EQ(*bus_ids.begin(), "0000:01:00.0");
  EXPECT_EQ(uuids.size(), 8U);
  char small[4];
  EXPECT_EQ(cudaDeviceGetPCIBusId(small, 4, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceGetPCIBusId(small, 4, 8), cudaErrorInvalidDevice);
  cudaGetLastError();
}

TEST(SimtDevices, HaveMemoryOfTheirOwn) {
  constexpr std::size_t kAlmostAll = (std::size_t{1} << 30) - 4096;
  void *first = nullptr, *second = nullptr;
  std::size_t free_bytes = 0, total_bytes = 0;
  EXPECT_EQ(cudaMalloc(&first, 1 << 20), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&second, kAlmostAll), cudaErrorMemoryAllocation);
  cudaSetDevice(1);
  cudaMemGetInfo(&free_bytes, &total_bytes);
  EXPECT_EQ(free_bytes, total_bytes);
  EXPECT_EQ(cudaMalloc(&second, 1 << 20), cudaSuccess);
  cudaMemGetInfo(&free_bytes, &total_bytes);
  EXPECT_EQ(free_bytes, total_bytes - (1 << 20));
  cudaSetDevice(0);
  cudaFree(first);
  cudaFree(second);
  cudaGetLastError();
}

TEST(SimtDevices, KernelsNeedAStreamOfTheThreadsDevice) {
  const OnDevice other(1), used(0);
  cudaSetDevice(0);
  EXPECT_EQ(launch_store(used.values, other.stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_THROW(simt::enqueue(other.stream, [] {}), simt::Fault);
  EXPECT_EQ(launch_store(used.values, used.stream), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(other.values, 0, kBytes, other.stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(other.stream), cudaSuccess);
  cudaStreamSynchronize(used.stream);
  cudaGetLastError();
}

TEST(SimtDevices, EventsAreRecordedByTheirDeviceAndWaitedForByAll) {
  const OnDevice one(0), other(1);
  EXPECT_EQ(cudaEventRecord(one.event, other.stream), cudaErrorInvalidResourceHandle);
  cudaSetDevice(0);
  EXPECT_EQ(cudaEventRecord(other.event, nullptr), cudaErrorInvalidResourceHandle);
  bool has_run = false, runs_after = false;
  simt::enqueue(one.stream, [&] { has_run = true; });
  EXPECT_EQ(cudaEventRecord(one.event, one.stream), cudaSuccess);
  cudaSetDevice(1);
  EXPECT_EQ(cudaStreamWaitEvent(other.stream, one.event), cudaSuccess);
  simt::enqueue(other.stream, [&] { runs_after = has_run; });
  cudaDeviceSynchronize();
  EXPECT_TRUE(runs_after);
  EXPECT_EQ(cudaEventSynchronize(one.event), cudaSuccess);
  cudaEventRecord(other.event, other.stream);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, one.event, other.event),
            cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

TEST(SimtDevices, AWaitForADeviceLeavesOutTheOthers) {
  simt::set_seed(0);
  const OnDevice one(0), other(1);
  bool has_run = false;
  simt::enqueue(other.stream, [&] { has_run = true; });
  cudaSetDevice(0);
  cudaDeviceSynchronize();
  EXPECT_FALSE(has_run);
  cudaSetDevice(1);
  cudaDeviceSynchronize();
  EXPECT_TRUE(has_run);
}

TEST(SimtDevices, EachHasADefaultStream) {
  simt::set_seed(0);
  bool of_first = false, of_second = false;
  simt::enqueue(nullptr, [&] { of_first = true; });
  cudaSetDevice(1);
  simt::enqueue(nullptr, [&] { of_second = true; });
  cudaSetDevice(0);
  cudaStreamSynchronize(nullptr);
  EXPECT_TRUE(of_first);
  EXPECT_FALSE(of_second);
  cudaSetDevice(1);
  cudaStreamSynchronize(nullptr);
  EXPECT_TRUE(of_second);
  cudaSetDevice(0);
}

TEST(SimtDevices, CopiesReachEveryDevice) {
  const OnDevice one(0), other(1);
  std::memset(one.values, 3, kBytes);
  cudaMemcpyAsync(other.values, one.values, kBytes, cudaMemcpyDefault, other.stream);
  cudaStreamSynchronize(other.stream);
  EXPECT_TRUE(std::equal(one.values, one.values + kValues, other.values));
}

/// What is reported when a kernel of device 0 writes to device 1.
std::string report_of_access() {
  const OnDevice other(1), one(0);
  try {
    launch_store(one.values, one.stream);
    launch_store(other.values, one.stream);
    cudaStreamSynchronize(one.stream);
  } catch (const simt::Fault& fault) {
    return fault.what();
  }
  return "";
}

TEST(SimtDevices, KernelsNeedAccessToAnothersMemory) {
  if (!race_kernels::kernels_tell())
    GTEST_SKIP() << "kernels of this build do not tell what they touch";
  const auto is_told = AllOf(HasSubstr("store on stream"), HasSubstr("memory of device 1"));
  EXPECT_THAT(report_of_access(), is_told);
  int can_access = 0;
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can_access, 0, 1), cudaSuccess);
  EXPECT_EQ(can_access, 1);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(report_of_access(), "");
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  EXPECT_THAT(report_of_access(), is_told);
  cudaGetLastError();
}

TEST(SimtDevices, AccessCanEndBetweenTwoKernels) {
  if (!race_kernels::kernels_tell())
    GTEST_SKIP() << "kernels of this build do not tell what they touch";
  const OnDevice other(1), one(0);
  cudaDeviceEnablePeerAccess(1, 0);
  launch_store(other.values, one.stream);
  EXPECT_EQ(cudaStreamSynchronize(one.stream), cudaSuccess);
  cudaDeviceDisablePeerAccess(1);
  launch_store(other.values, one.stream);
  EXPECT_THROW(cudaStreamSynchronize(one.stream), simt::Fault);
}

TEST(SimtDevices, FillsNeedAccessToAnothersMemory) {
  const OnDevice other(1), one(0);
  cudaMemsetAsync(other.values, 0, kBytes, one.stream);
  EXPECT_THROW(cudaStreamSynchronize(one.stream), simt::Fault);
}

}  // namespace
