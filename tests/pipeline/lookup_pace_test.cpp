#include "src/pipeline/lookup_pace.h"

#include <algorithm>
#include <deque>

#include <gtest/gtest.h>

namespace satrap::pipeline {
namespace {

using Time = LookupPace::Time;
using Seconds = std::chrono::duration<double>;

Time at(double seconds) {
  return Time(std::chrono::duration_cast<Time::duration>(Seconds(seconds + 1000.0)));
}

/// A rank whose shards need `latency` from the sending of a gradient to the arrival of rows, in a
/// made-up time, and `queue` more for each step that is under way besides. `ahead`: steps that are
/// requested before their turn.
class MadeUpRank {
 public:
  MadeUpRank(std::int64_t bound, std::int64_t ahead) : pace(bound, ahead), bound_(bound) {
    for (std::int64_t step = 1; step <= ahead; ++step) request(step, 0.0);
  }

  /// One step; returns its staleness and adds the time for which the dense stage waited.
  std::int64_t train(double latency, double dense, double pooling, double queue = 0.0) {
    const std::int64_t step = ++step_;
    const auto [least, requested] = requests_.front();
    requests_.pop_front();
    const std::int64_t version = std::max({least, step - 1 - bound_, std::int64_t{0}});
    latency += queue * static_cast<double>(step - 1 - version);
    const double sent = version == 0 ? 0.0 : sent_[static_cast<std::size_t>(version - 1)];
    const double answered = std::max(pooled_, std::max(sent, requested) + latency);
    const double pooled = answered + pooling;
    pace.note_pooled(step, version, at(pooled));
    pooled_ = pooled;
    waited = std::max(0.0, pooled - time_);
    time_ = std::max(time_, pooled) + dense;
    sent_.push_back(time_);
    pace.note_sent(step, at(time_));
    request(step + std::ssize(requests_) + 1, time_);
    return step - 1 - version;
  }

  double waited = 0.0;  // by the dense stage, for the last step
  LookupPace pace;

 private:
  void request(std::int64_t step, double now) {
    requests_.emplace_back(pace.request(step, at(now)), now);
  }

  const std::int64_t bound_;
  std::int64_t step_ = 0;
  double time_ = 0.0, pooled_ = 0.0;
  std::deque<std::pair<std::int64_t, double>> requests_;
  std::vector<double> sent_;  // by step
};

TEST(LookupPace, AsksForRowsOneStepOldUntilItHasMeasured) {
  LookupPace pace(4, 8);
  EXPECT_EQ(pace.staleness(), 1);
  EXPECT_EQ(pace.request(7, at(0)), 5);
  EXPECT_EQ(pace.request(8, at(0)), 6);
}

// How many steps after the first three lookups read the newest version, which makes the dense stage
// wait.
bool measures(std::int64_t steps) {
  for (const std::int64_t begin : {2, 16, 128, 1024, 2048}) {
    if (steps >= begin && steps < begin + 3) return true;
  }
  return false;
}

TEST(LookupPace, IsOneStepPlusTheLatencyInSteps) {
  struct Case {
    double latency, dense;
    std::int64_t staleness;
  };
  for (const Case& c : {Case{0.001, 0.010, 1}, Case{0.009, 0.010, 1}, Case{0.011, 0.010, 2},
                        Case{0.035, 0.010, 4}, Case{0.100, 0.010, 8}}) {
    MadeUpRank rank(8, 6);
    for (int step = 0; step < 600; ++step) {
      const std::int64_t staleness = rank.train(c.latency, c.dense, 0.0001);
      if (step <= 100) continue;
      // The lookups after it want no older rows.
      const bool is_usual = !measures(step) && !(step > 128 && step < 140);
      if (measures(step)) {
        EXPECT_EQ(staleness, 0) << c.latency << ", step " << step + 1;
      } else {
        EXPECT_LE(staleness, c.staleness) << c.latency << ", step " << step + 1;
      }
      if (is_usual) {
        EXPECT_EQ(staleness, c.staleness) << c.latency << ", step " << step + 1;
      }
      if (is_usual && c.latency < 0.07) {
        EXPECT_LT(rank.waited, 1e-9) << c.latency << ", step " << step + 1;
      }
    }
    EXPECT_EQ(rank.pace.staleness(), c.staleness);
  }
}

TEST(LookupPace, FollowsALinkThatChanges) {
  MadeUpRank rank(8, 6);
  for (int step = 0; step < 200; ++step) rank.train(0.002, 0.010, 0.0001);
  EXPECT_EQ(rank.pace.staleness(), 1);
  for (int step = 0; step < 2100; ++step) rank.train(0.025, 0.010, 0.0001);
  EXPECT_EQ(rank.pace.staleness(), 3);
  for (int step = 0; step < 2100; ++step) rank.train(0.002, 0.010, 0.0001);
  EXPECT_EQ(rank.pace.staleness(), 1);
}

TEST(LookupPace, OneSlowLookupChangesNothing) {
  MadeUpRank rank(8, 6);
  for (int step = 0; step < 600; ++step) {
    rank.train(step == 129 ? 0.5 : 0.002, 0.010, 0.0001);
    if (step > 4) {
      EXPECT_EQ(rank.pace.staleness(), 1) << step;
    }
  }
}

// Where the link or the processor is full, what is under way takes as long as there is of it.
TEST(LookupPace, WhatIsUnderWayDoesNotCountAsLatency) {
  MadeUpRank rank(16, 12);
  for (int step = 0; step < 600; ++step) rank.train(0.015, 0.010, 0.0001, 0.010);
  EXPECT_EQ(rank.pace.staleness(), 2);
}

TEST(LookupPace, NeverAsksForMoreThanTheBound) {
  for (const std::int64_t bound : {0, 1, 2, 3}) {
    MadeUpRank rank(bound, 6);
    for (int step = 0; step < 300; ++step) EXPECT_LE(rank.train(0.5, 0.010, 0.0001), bound);
    EXPECT_EQ(rank.pace.staleness(), bound);
  }
}

TEST(LookupPace, WithABoundOfOneStepNoneReadsTheNewestVersion) {
  LookupPace pace(1, 8);
  for (std::int64_t step = 2; step <= 300; ++step) EXPECT_EQ(pace.request(step, at(0)), step - 2);
}

}  // namespace
}  // namespace satrap::pipeline
