#include "satrap/backend/recordings.h"

#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/backend/memory.h"
#include "tests/support/device/device.h"

namespace satrap {
namespace {

using backend::Recordings;
using backend::StreamRef;
using satrap::testing::device;
using satrap::testing::for_each_schedule;

/// Numbers in the device's memory, to each of which work adds one.
class Counters {
 public:
  explicit Counters(std::size_t count) : stream_(device()), recordings_(device(), stream_) {
    const std::vector<float> first{1.0F, 0.0F};  // the one, and where a counter begins
    for (std::size_t i = 0; i < count; ++i) {
      numbers_.emplace_back(device(), backend::Place::kDevice, 8, "a counter");
      device().copy(numbers_.back().data(), first.data(), 8, stream_);
    }
    stream_.wait_until_idle();
  }

  void add_one(std::size_t i) {
    const std::array<std::int64_t, 2> arguments{reinterpret_cast<std::int64_t>(counter(i)), 1};
    recordings_.run(std::as_bytes(std::span(arguments)), [&](StreamRef stream, bool is_recorded) {
      ++num_queued_;
      num_recorded_ += is_recorded ? 1 : 0;
      if (fails_) throw std::runtime_error("cannot be queued");
      const std::array<const float*, 2> added{counter(i) - 1, counter(i)};
      device().add_in_order({added, 1, counter(i)}, stream);
    });
  }
  float value(std::size_t i) const {
    float value = 0.0F;
    device().copy(&value, counter(i), 4, stream_);
    stream_.wait_until_idle();
    return value;
  }
  int num_queued() const { return num_queued_; }
  int num_recorded() const { return num_recorded_; }
  void fail(bool fails) { fails_ = fails; }

 private:
  float* counter(std::size_t i) const { return reinterpret_cast<float*>(numbers_[i].data()) + 1; }

  const backend::Stream stream_;
  std::vector<backend::Memory> numbers_;
  Recordings recordings_;
  int num_queued_ = 0, num_recorded_ = 0;
  bool fails_ = false;
};

TEST(DeviceRecordings, WorkThatComesAgainIsRecordedOnceAndRunsEachTime) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([&] {
    Counters counters(1);
    for (int i = 0; i < 8; ++i) counters.add_one(0);
    EXPECT_EQ(counters.value(0), 8.0F);
    EXPECT_EQ(counters.num_recorded(), device().is_host() ? 0 : 1);
    EXPECT_EQ(counters.num_queued(), device().is_host() ? 8 : Recordings::kRunsBefore + 1);
  });
}

TEST(DeviceRecordings, OtherArgumentsAreOtherWork) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([&] {
    Counters counters(3);
    for (int i = 0; i < 5; ++i) {
      for (const std::size_t c : {0, 1, 2}) counters.add_one(c);
      counters.add_one(1);
    }
    EXPECT_EQ(counters.value(0), 5.0F);
    EXPECT_EQ(counters.value(1), 10.0F);
    EXPECT_EQ(counters.value(2), 5.0F);
    EXPECT_EQ(counters.num_recorded(), device().is_host() ? 0 : 3);
  });
}

TEST(DeviceRecordings, WhatWasUsedLongestAgoMakesRoom) {
  SATRAP_NEEDS_DEVICE();
  const std::size_t count = Recordings::kMax + 1;
  Counters counters(count);
  const auto use = [&](std::size_t c) {
    for (int i = 0; i < 4; ++i) counters.add_one(c);
  };
  for (std::size_t c = 0; c < count; ++c) use(c);
  const int recorded = counters.num_recorded();
  use(count - 1);  // is still there
  EXPECT_EQ(counters.num_recorded(), recorded);
  use(0);  // is not
  EXPECT_EQ(counters.num_recorded(), recorded + (device().is_host() ? 0 : 1));
  EXPECT_EQ(counters.value(0), 8.0F);
  EXPECT_EQ(counters.value(1), 4.0F);
  EXPECT_EQ(counters.value(count - 1), 8.0F);
}

TEST(DeviceRecordings, WhatCannotBeQueuedIsNoRecording) {
  SATRAP_NEEDS_DEVICE();
  Counters counters(1);
  for (int i = 0; i < Recordings::kRunsBefore; ++i) counters.add_one(0);
  counters.fail(true);
  EXPECT_THROW(counters.add_one(0), std::runtime_error);
  counters.fail(false);
  counters.add_one(0);
  counters.add_one(0);
  EXPECT_EQ(counters.value(0), static_cast<float>(Recordings::kRunsBefore + 2));
}

}  // namespace
}  // namespace satrap
