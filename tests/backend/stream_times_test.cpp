#include "satrap/backend/stream_times.h"

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
  EXPECT_EQ(times.seconds(), 0.0);
  const DeviceArray<std::byte> memory(1 << 20);
  for (int i = 0; i < 20; ++i) {
    const StreamTimes::Span span(&times, StreamTimes::kNetwork);
    device().fill(memory.data(), i, 1 << 20, stream);
  }
  stream.wait_until_idle();
  EXPECT_GT(times.seconds(StreamTimes::kNetwork), 0.0);
  EXPECT_EQ(times.seconds(StreamTimes::kLookup), 0.0);
  EXPECT_EQ(times.seconds(), times.seconds(StreamTimes::kNetwork));
}

TEST(StreamTimes, WhatIsNotDoneDoesNotCount) {
  SATRAP_NEEDS_DEVICE();
  const backend::Stream stream(device());
  StreamTimes times(device(), stream);
  const StreamTimes::Span span(&times, StreamTimes::kUpdate);
  EXPECT_EQ(times.seconds(), 0.0);
}

TEST(StreamTimes, AreMeasuredByTwoThreads) {
  SATRAP_NEEDS_DEVICE();
  const backend::Stream stream(device());
  StreamTimes times(device(), stream);
  const auto measure = [&](StreamTimes::Kind kind) {
    device().use_on_this_thread();
    for (int i = 0; i < 200; ++i) const StreamTimes::Span span(&times, kind);
  };
  std::thread other(measure, StreamTimes::kLookup);
  measure(StreamTimes::kNetwork);
  other.join();
  stream.wait_until_idle();
  EXPECT_GE(times.seconds(StreamTimes::kLookup), 0.0);
  EXPECT_GE(times.seconds(StreamTimes::kNetwork), 0.0);
}

TEST(StreamTimes, EndWithAnError) {
  SATRAP_NEEDS_DEVICE();
  const backend::Stream stream(device());
  StreamTimes times(device(), stream);
  try {
    const StreamTimes::Span span(&times, StreamTimes::kLookup);
    throw std::runtime_error("of what is measured");
  } catch (const std::runtime_error&) {
    stream.wait_until_idle();
  }
  EXPECT_GE(times.seconds(StreamTimes::kLookup), 0.0);
  const StreamTimes::Span nothing(nullptr, StreamTimes::kLookup);
}

}  // namespace
}  // namespace satrap::testing
