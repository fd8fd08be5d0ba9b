#include "src/trainer/report_clock.h"

#include <gtest/gtest.h>

namespace satrap::trainer {
namespace {

using Due = ReportClock::Due;

ReportClock clock_of(const char* interval) {
  return ReportClock(job::Interval::parse(interval, "train.report_every"));
}

TEST(ReportClock, AShortRunHasAPointForEveryFiftiethPart) {
  ReportClock clock = clock_of("10s");
  int points = 0;
  for (int step = 1; step <= 1000; ++step) {
    points += clock.due(step, 0, 0.0005 * step, step / 1000.0) == Due::kPoint ? 1 : 0;
  }
  EXPECT_EQ(points, ReportClock::kPoints - 1) << "and the end";
}

TEST(ReportClock, ARunOfFewStepsHasAPointForEach) {
  ReportClock clock = clock_of("10s");
  for (int step = 1; step <= 3; ++step) {
    EXPECT_EQ(clock.due(step, 0, 0.01 * step, step / 4.0), Due::kPoint);
  }
  EXPECT_EQ(clock.due(4, 0, 0.04, 1.0), Due::kNo) << "the end is reported in any case";
}

TEST(ReportClock, TheUserIsToldAtTheInterval) {
  ReportClock clock = clock_of("10s");
  EXPECT_EQ(clock.due(1, 0, 0.5, 0.0001), Due::kNo);
  EXPECT_EQ(clock.due(2, 0, 1.0, 0.0001), Due::kPoint) << "in the first second";
  EXPECT_EQ(clock.due(3, 0, 1.5, 0.0001), Due::kNo);
  EXPECT_EQ(clock.due(4, 0, 10.0, 0.0001), Due::kReport);
  EXPECT_EQ(clock.due(5, 0, 19.9, 0.0002), Due::kPoint);
  EXPECT_EQ(clock.due(6, 0, 20.0, 0.0002), Due::kReport);
}

TEST(ReportClock, AnUnknownShareHasPointsInTheFirstSeconds) {
  ReportClock clock = clock_of("1h");
  int points = 0;
  for (int second = 0; second < 64; ++second) {
    points += clock.due(second, 0, second, -1.0) == Due::kPoint ? 1 : 0;
  }
  EXPECT_EQ(points, 6) << "after 1, 2, 4, ... 32 seconds";
}

TEST(ReportClock, AContinuedRunDoesNotRepeatItsPoints) {
  ReportClock clock = clock_of("10s");
  clock.begin(0.5);
  EXPECT_EQ(clock.due(501, 0, 0.1, 0.501), Due::kNo);
  EXPECT_EQ(clock.due(520, 0, 0.2, 0.52), Due::kPoint);
}

TEST(ReportClock, EpochsAreToldAtTheirEnds) {
  ReportClock clock = clock_of("2 epochs");
  EXPECT_EQ(clock.due(4, 1, 100.0, 0.25), Due::kNo);
  EXPECT_EQ(clock.due(7, 0, 200.0, 0.45), Due::kNo);
  EXPECT_EQ(clock.due(8, 2, 200.0, 0.5), Due::kReport);
}

TEST(ReportClock, StepsAndNeverAreWhatTheySay) {
  ReportClock steps = clock_of("5 steps");
  EXPECT_EQ(steps.due(4, 0, 100.0, 0.9), Due::kNo);
  EXPECT_EQ(steps.due(5, 0, 100.0, 0.9), Due::kReport);
  ReportClock never = clock_of("never");
  EXPECT_EQ(never.due(5, 0, 100.0, 0.9), Due::kNo);
}

}  // namespace
}  // namespace satrap::trainer
