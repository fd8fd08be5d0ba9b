#include "satrap/backend/stream_times.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "tests/backend/host_rows.h"

namespace satrap::testing {
namespace {

using backend::StreamTimes;

TEST(StreamTimes, GrowWithTheWorkOfTheirKind) {
  SATRAP_NEEDS_DEVICE();
  const backend::Stream stream(device());
  StreamTimes times(device(), stream);
  EXPECT_EQ(times.busy_seconds(), 0.0);
  const DeviceArray<std::byte> memory(1 << 20);
  for (int i = 0; i < 20; ++i) {
    const StreamTimes::Span span(&times, StreamTimes::kNetwork);
    device().fill(memory.data(), i, 1 << 20, stream);
  }
  stream.wait_until_idle();
  EXPECT_GT(times.seconds(StreamTimes::kNetwork), 0.0);
  EXPECT_EQ(times.seconds(StreamTimes::kLookup), 0.0);
  EXPECT_NEAR(times.busy_seconds(), times.seconds(StreamTimes::kNetwork), 1e-6);
}

TEST(StreamTimes, WhatIsNotDoneDoesNotCount) {
  SATRAP_NEEDS_DEVICE();
  const backend::Stream stream(device());
  StreamTimes times(device(), stream);
  const StreamTimes::Span span(&times, StreamTimes::kUpdate);
  EXPECT_EQ(times.seconds(StreamTimes::kUpdate), 0.0);
  EXPECT_EQ(times.busy_seconds(), 0.0);
}

// What one kind spends within another counts for both, and once for the device.
TEST(StreamTimes, WorkWithinOtherWorkCountsOnce) {
  SATRAP_NEEDS_DEVICE();
  const backend::Stream stream(device());
  StreamTimes times(device(), stream);
  const DeviceArray<std::byte> memory(1 << 20);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    const StreamTimes::Span outer(&times, StreamTimes::kNetwork);
    device().fill(memory.data(), i, 1 << 20, stream);
    const StreamTimes::Span inner(&times, StreamTimes::kLookup);
    device().fill(memory.data(), i, 1 << 20, stream);
  }
  stream.wait_until_idle();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  const double network = times.seconds(StreamTimes::kNetwork);
  EXPECT_GT(times.seconds(StreamTimes::kLookup), 0.0);
  EXPECT_GT(network, times.seconds(StreamTimes::kLookup));
  EXPECT_NEAR(times.busy_seconds(), network, 1e-6 + 0.01 * network);
  EXPECT_LE(times.busy_seconds(), passed.count());
}

TEST(StreamTimes, AnExchangeIsNoWorkOfTheDevice) {
  SATRAP_NEEDS_DEVICE();
  const backend::Stream stream(device());
  StreamTimes times(device(), stream);
  const DeviceArray<std::byte> memory(1 << 20);
  for (const StreamTimes::Kind kind : {StreamTimes::kExchange, StreamTimes::kUpdate}) {
    const StreamTimes::Span span(&times, kind);
    for (int i = 0; i < 20; ++i) device().fill(memory.data(), i, 1 << 20, stream);
  }
  stream.wait_until_idle();
  EXPECT_GT(times.seconds(StreamTimes::kExchange), 0.0);
  EXPECT_NEAR(times.busy_seconds(), times.seconds(StreamTimes::kUpdate), 1e-6);
}

TEST(StreamTimes, AreMeasuredByTwoThreads) {
  SATRAP_NEEDS_DEVICE();
  const backend::Stream stream(device());
  StreamTimes times(device(), stream);
  const auto measure = [&](StreamTimes::Kind kind) {
    device().use_on_this_thread();
    const DeviceArray<std::byte> memory(1 << 16);  // a thread of the host writes it at once
    for (int i = 0; i < 200; ++i) {
      const StreamTimes::Span span(&times, kind);
      device().fill(memory.data(), i, 1 << 16, stream);
    }
  };
  const auto start = std::chrono::steady_clock::now();
  std::thread other(measure, StreamTimes::kLookup);
  measure(StreamTimes::kNetwork);
  other.join();
  stream.wait_until_idle();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  const double lookup = times.seconds(StreamTimes::kLookup);
  const double network = times.seconds(StreamTimes::kNetwork);
  EXPECT_GT(lookup, 0.0);
  EXPECT_GT(network, 0.0);
  EXPECT_LE(times.busy_seconds(), std::min(lookup + network, passed.count()) + 1e-3);
}

TEST(StreamTimes, EndWithAnError) {
  SATRAP_NEEDS_DEVICE();
  const backend::Stream stream(device());
  StreamTimes times(device(), stream);
  EXPECT_THROW(
      {
        const StreamTimes::Span span(&times, StreamTimes::kLookup);
        throw std::runtime_error("of what is measured");
      },
      std::runtime_error);
  const DeviceArray<std::byte> memory(1 << 20);
  {
    const StreamTimes::Span again(&times, StreamTimes::kLookup);
    device().fill(memory.data(), 1, 1 << 20, stream);
  }
  stream.wait_until_idle();
  EXPECT_GT(times.seconds(StreamTimes::kLookup), 0.0);
  const StreamTimes::Span nothing(nullptr, StreamTimes::kLookup);
}

}  // namespace
}  // namespace satrap::testing
