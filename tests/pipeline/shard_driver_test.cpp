#include "src/pipeline/shard_driver.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/net/file_rendezvous.h"
#include "satrap/ps/shard_client.h"
#include "satrap/ps/shard_server.h"
#include "tests/pipeline/driver_fixture.h"
#include "tests/support/temporary_directory.h"

namespace satrap::pipeline {
namespace {

using std::chrono::milliseconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// The rows are fakes: the shard is asked only for its progress.
class ShardDriverTest : public DriverTest {
 protected:
  ShardDriverTest() { client_->begin({.session = 5, .num_ranks = 1, .staleness = 2}); }

  /// Call it once.
  ShardDriver& start(const StepDriver::Options& options) {
    StepQueue& queue = make_queue(options);
    driver_ = std::make_unique<ShardDriver>(queue, access_, *client_, options, timers_);
    return *driver_;
  }

  /// One after the other.
  void train_steps(ShardDriver& driver, std::int64_t num_steps) {
    for (std::int64_t step = 1; step <= num_steps; ++step) {
      access_.set_version(step, step - 1);
      plan(driver, step);
      train(step);
      queue_->wait_retired(step);
    }
  }

  static std::vector<table::TableSpec> tables() {
    table::TableSpec spec;
    spec.name = "user";
    spec.dim = 2;
    return {spec};
  }

  const TemporaryDirectory directory_;
  const std::shared_ptr<net::FileRendezvous> store_ =
      std::make_shared<net::FileRendezvous>(directory_.path() + "/store");
  const net::Endpoint server_end_{{}}, client_end_{{}};
  ps::ShardServer server_{server_end_, *store_, tables(), 7, {}};
  const std::unique_ptr<ps::ShardClient> client_ =
      ps::ShardClient::create(client_end_, store_, tables(), 7, {.timeout_ms = 60'000});
  std::unique_ptr<ShardDriver> driver_;
};

TEST_F(ShardDriverTest, RowsAreAskedForAsSoonAsAStepIsPlanned) {
  ShardDriver& driver = start({.staleness = 2});
  access_.close_gate(RowCall::kWait);
  plan(driver, 1);
  plan(driver, 2);
  EXPECT_THAT(access_.calls(), ElementsAre("plan 1", "request 1", "plan 2", "request 2"));
  access_.open_gate(RowCall::kWait);
}

TEST_F(ShardDriverTest, ALookupIsOfTheVersionThatTheShardsTell) {
  ShardDriver& driver = start({.staleness = 2});
  access_.set_version(1, 0);
  access_.set_version(2, 1);
  access_.set_version(3, 0);
  for (const std::int64_t step : {1, 2, 3}) plan(driver, step);
  for (const std::int64_t step : {1, 2, 3}) take(step);
  EXPECT_EQ(work(2)->read_version, 1);
  EXPECT_EQ(work(3)->read_version, 0);
  EXPECT_THAT(queue_->staleness_histogram(), ElementsAre(2, 0, 1));
}

TEST_F(ShardDriverTest, AVersionBeyondTheBoundIsABug) {
  ShardDriver& driver = start({.first_step = 4, .staleness = 2});
  access_.set_version(4, 0);
  plan(driver, 4);
  EXPECT_THAT(message_of(ErrorCode::kInternal, [&] { queue_->take_looked_up(nullptr); }),
              HasSubstr("lookup of step 4 read E_0, bound is 2"));
}

TEST_F(ShardDriverTest, ALookupAsksForRowsAsNewAsTheLatencyAllows) {
  ShardDriver& driver = start({.staleness = 2});
  train_steps(driver, 30);
  EXPECT_EQ(access_.wish_of(2), 0);  // nothing is measured yet
  EXPECT_GE(access_.wish_of(30), 27);
  EXPECT_LE(access_.wish_of(30), 28);
}

TEST_F(ShardDriverTest, DeterministicLookupsAskForNone) {
  ShardDriver& driver = start({.staleness = 2, .deterministic = true});
  train_steps(driver, 30);
  for (std::int64_t step = 1; step <= 30; ++step) EXPECT_EQ(access_.wish_of(step), 0);
}

TEST_F(ShardDriverTest, AsyncLookupsAskForNone) {
  ShardDriver& driver = start({.staleness = 2, .is_async = true});
  train_steps(driver, 30);
  for (std::int64_t step = 1; step <= 30; ++step) EXPECT_EQ(access_.wish_of(step), 0);
}

TEST_F(ShardDriverTest, InAsyncModeThereIsNoBound) {
  ShardDriver& driver = start({.first_step = 4, .is_async = true});
  access_.set_version(4, 0);
  plan(driver, 4);
  EXPECT_EQ(take(4)->read_version, 0);
}

TEST_F(ShardDriverTest, AStepIsRetiredOnceItsUpdateIsTaken) {
  ShardDriver& driver = start({});
  access_.close_gate(RowCall::kTaken);
  plan(driver, 1);
  train(1);
  access_.wait_for_waiting(RowCall::kTaken);
  EXPECT_THAT(access_.calls(), Contains("update 1"));
  EXPECT_FALSE(queue_->wait_retired_until(1, std::chrono::steady_clock::now()));
  access_.open_gate(RowCall::kTaken);
  queue_->wait_retired(1);
  EXPECT_THAT(access_.calls(), Contains("taken 1"));
}

TEST_F(ShardDriverTest, SeveralUpdatesAreOnTheirWayAtOnce) {
  ShardDriver& driver = start({.staleness = 2});
  access_.close_gate(RowCall::kTaken);
  for (const std::int64_t step : {1, 2, 3}) {
    access_.set_version(step, step - 1);
    plan(driver, step);
  }
  for (const std::int64_t step : {1, 2, 3}) train(step);
  access_.wait_for(RowCall::kUpdate, 3);
  EXPECT_THAT(access_.calls(), Not(Contains("taken 1")));
  access_.open_gate(RowCall::kTaken);
  queue_->wait_retired(3);
}

TEST_F(ShardDriverTest, ATakenUpdateIsAppliedOnlyWhenTheShardsSaySo) {
  ShardDriver& driver = start({});
  plan(driver, 1);
  train(1);
  queue_->wait_retired(1);
  EXPECT_FALSE(driver.wait_applied_for(1, milliseconds(1)));
  EXPECT_TRUE(driver.wait_applied_for(0, milliseconds(60'000)));  // its initial state
}

TEST_F(ShardDriverTest, AStepThatWasNotFiniteUpdatesNothing) {
  ShardDriver& driver = start({});
  plan(driver, 1);
  Work* const work = take(1);
  work->nonfinite = 1.0F;
  give_gradient(work);
  queue_->wait_retired(1);
  EXPECT_THAT(access_.calls(), ElementsAre("plan 1", "request 1", "wait 1", "skip 1", "taken 1"));
}

TEST_F(ShardDriverTest, TheEndOfTheDataEndsTheQueue) {
  ShardDriver& driver = start({});
  plan(driver, 1);
  driver.close();
  train(1);
  EXPECT_EQ(queue_->take_looked_up(nullptr), nullptr);
  queue_->wait_retired(1);
  EXPECT_TRUE(queue_->has_ended());
}

TEST_F(ShardDriverTest, StoppingEndsThePlannersWaitForRoom) {
  ShardDriver& driver = start({.planned_capacity = 1});
  access_.close_gate(RowCall::kWait);
  EXPECT_TRUE(plan(driver, 1));
  std::thread planner([&] { EXPECT_FALSE(plan(driver, 2)); });
  access_.wait_for(RowCall::kPlan, 2);
  driver.stop();
  planner.join();
  access_.open_gate(RowCall::kWait);
}

class ShardDriverError : public ShardDriverTest, public testing::WithParamInterface<RowCall> {};

INSTANTIATE_TEST_SUITE_P(OfEveryThread,
                         ShardDriverError,
                         testing::Values(RowCall::kWait, RowCall::kUpdate, RowCall::kTaken));

TEST_P(ShardDriverError, ComesOutAtTheDenseSideAndEndsThePlanner) {
  ShardDriver& driver = start({});
  access_.fail(GetParam(), 1);
  plan(driver, 1);
  const auto train_and_wait = [&] {
    train(1);
    queue_->wait_retired(1);
  };
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, train_and_wait), HasSubstr("1 fails, as it was"));
  EXPECT_FALSE(plan(driver, 2));
}

}  // namespace
}  // namespace satrap::pipeline
