#include "src/pipeline/serial_driver.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/pipeline/driver_fixture.h"

namespace satrap::pipeline {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

class SerialDriverTest : public DriverTest {
 protected:
  static PendingLookup lookup(std::int64_t step,
                              std::int64_t read_version,
                              std::vector<float> pooled) {
    return {step, read_version, std::move(pooled), {}};
  }

  /// Call it once.
  SerialDriver& start(const StepDriver::Options& options) {
    StepQueue& queue = make_queue(options);
    driver_ = std::make_unique<SerialDriver>(queue, access_, options, timers_);
    return *driver_;
  }

  std::unique_ptr<SerialDriver> driver_;
};

TEST_F(SerialDriverTest, InSyncModeALookupComesAfterTheUpdateBefore) {
  SerialDriver& driver = start({});
  access_.close_gate(RowCall::kWait);
  for (const std::int64_t step : {1, 2, 3}) plan(driver, step);
  access_.open_gate(RowCall::kWait);
  for (const std::int64_t step : {1, 2, 3}) {
    Work* const work = take(step);
    EXPECT_EQ(work->read_version, step - 1);
    give_gradient(work);
  }
  driver.wait_applied(3);
  EXPECT_THAT(access_.calls(),
              ElementsAre("plan 1", "request 1", "plan 2", "request 2", "plan 3", "request 3",
                          "wait 1", "update 1", "wait 2", "update 2", "wait 3", "update 3"));
}

TEST_F(SerialDriverTest, DeterministicModeLooksUpAsFarAheadAsTheBoundAndNoFurther) {
  SerialDriver& driver = start({.staleness = 2, .deterministic = true});
  access_.close_gate(RowCall::kWait);
  for (const std::int64_t step : {1, 2, 3, 4}) plan(driver, step);
  driver.close();
  access_.open_gate(RowCall::kWait);
  Work* const first = take(1);
  access_.wait_for(RowCall::kWait, 3);  // no gradient is there yet
  give_gradient(first);
  for (const std::int64_t step : {2, 3, 4}) train(step);
  driver.wait_applied(4);
  EXPECT_EQ(work(3)->read_version, 0);
  EXPECT_EQ(work(4)->read_version, 1);
  EXPECT_THAT(access_.calls(),
              ElementsAre("plan 1", "request 1", "plan 2", "request 2", "plan 3", "request 3",
                          "plan 4", "request 4", "wait 1", "wait 2", "wait 3", "update 1", "wait 4",
                          "update 2", "update 3", "update 4"));
}

TEST_F(SerialDriverTest, AStepThatWasNotFiniteUpdatesNothing) {
  SerialDriver& driver = start({});
  plan(driver, 1);
  Work* const work = take(1);
  work->nonfinite = 1.0F;
  give_gradient(work);
  driver.wait_applied(1);
  EXPECT_THAT(access_.calls(), ElementsAre("plan 1", "request 1", "wait 1", "skip 1"));
}

TEST_F(SerialDriverTest, AStepIsAppliedOnceItsUpdateHasReturned) {
  SerialDriver& driver = start({});
  access_.close_gate(RowCall::kUpdate);
  plan(driver, 1);
  train(1);
  access_.wait_for_waiting(RowCall::kUpdate);
  EXPECT_FALSE(driver.wait_applied_for(1, milliseconds(0)));
  access_.open_gate(RowCall::kUpdate);
  EXPECT_TRUE(driver.wait_applied_for(1, milliseconds(60'000)));
}

TEST_F(SerialDriverTest, TheEndOfTheDataEndsTheQueue) {
  SerialDriver& driver = start({});
  plan(driver, 1);
  driver.close();
  train(1);
  EXPECT_EQ(queue_->take_looked_up(nullptr), nullptr);
  driver.wait_applied(1);
  EXPECT_TRUE(queue_->has_ended());
}

TEST_F(SerialDriverTest, DataOfNoStepEndItToo) {
  start({}).close();
  EXPECT_EQ(queue_->take_looked_up(nullptr), nullptr);
}

TEST_F(SerialDriverTest, TheErrorOfALookupComesOutAtTheDenseSide) {
  SerialDriver& driver = start({});
  access_.fail(RowCall::kWait, 1);
  plan(driver, 1);
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { queue_->take_looked_up(nullptr); }),
              HasSubstr("wait 1 fails"));
}

TEST_F(SerialDriverTest, TheErrorOfAnUpdateComesOutAtTheDenseSide) {
  SerialDriver& driver = start({});
  access_.fail(RowCall::kUpdate, 1);
  plan(driver, 1);
  train(1);
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { driver.wait_applied(1); }),
              HasSubstr("update 1 fails"));
  EXPECT_FALSE(plan(driver, 2));
}

TEST_F(SerialDriverTest, StoppingEndsThePlannersWaitForRoom) {
  SerialDriver& driver = start({.planned_capacity = 0});
  access_.close_gate(RowCall::kWait);
  EXPECT_TRUE(plan(driver, 1));
  access_.wait_for_waiting(RowCall::kWait);
  std::thread planner([&] { EXPECT_FALSE(plan(driver, 2)); });
  access_.wait_for(RowCall::kPlan, 2);
  driver.stop();
  planner.join();
  access_.open_gate(RowCall::kWait);
}

TEST_F(SerialDriverTest, ARestoredLookupIsTakenAsItWasRead) {
  SerialDriver& driver = start({.first_step = 3,
                                .staleness = 2,
                                .deterministic = true,
                                .restored = {lookup(3, 0, {5, 6}), lookup(4, 1, {7, 8})}});
  for (const std::int64_t step : {3, 4, 5}) plan(driver, step);
  for (const std::int64_t step : {3, 4, 5}) {
    EXPECT_EQ(take(step)->read_version, step == 5 ? 2 : step - 3);
  }
  EXPECT_EQ(work(4)->inputs.pooled_values(), (std::vector<float>{7, 8}));
  EXPECT_EQ(work(5)->inputs.pooled_values(), (std::vector<float>{0, 0}));  // an example without ids
  EXPECT_EQ(access_.num_pooled, 3);  // a cache waits for this to let rows go
}

TEST_F(SerialDriverTest, ARestoredLookupOfAnotherShapeIsRefused) {
  SerialDriver& driver = start({.restored = {lookup(1, 0, {5, 6, 7})}});
  plan(driver, 1);
  EXPECT_THAT(message_of(ErrorCode::kInternal, [&] { queue_->take_looked_up(nullptr); }),
              HasSubstr("a lookup of 3 and 0 values is restored to 2 and 0"));
}

TEST_F(SerialDriverTest, ABatchWithoutExamplesIsAStepLikeAnyOther) {
  SerialDriver& driver = start({});
  work(1)->batch.num_examples = 0;
  work(1)->batch.labels = {};
  work(1)->batch.offsets = {0};
  plan(driver, 1);
  train(1);
  driver.wait_applied(1);
  EXPECT_THAT(access_.calls(), ElementsAre("plan 1", "request 1", "wait 1", "update 1"));
}

}  // namespace
}  // namespace satrap::pipeline
