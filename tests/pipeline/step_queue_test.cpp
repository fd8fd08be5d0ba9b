#include "satrap/pipeline/step_queue.h"

#include <array>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::pipeline {
namespace {

using std::chrono::steady_clock;

/// A queue with works for the steps from 1 on.
class StepQueueTest : public testing::Test {
 protected:
  StepQueueTest() {
    for (std::size_t i = 0; i < works_.size(); ++i) {
      works_[i].step = static_cast<std::int64_t>(i) + 1;
      works_[i].read_version = works_[i].step - 1;
    }
  }
  Work* work(std::int64_t step) { return &works_[static_cast<std::size_t>(step - 1)]; }

  void look_up(std::int64_t step) {
    queue_.add_planned(work(step));
    queue_.pass_on(work(step));
  }
  void train(std::int64_t step) {
    ASSERT_EQ(queue_.take_looked_up(nullptr), work(step));
    queue_.submit_gradient(work(step));
    queue_.finish(work(step));
    ASSERT_EQ(queue_.take_gradient(), work(step));
    queue_.retire(work(step));
  }

  std::array<Work, 4> works_;
  StepQueue queue_{1, 2};
};

TEST_F(StepQueueTest, AWorkThatIsPutBackIsPendingAndComesNext) {
  look_up(1);
  train(1);
  look_up(2);
  look_up(3);
  EXPECT_EQ(queue_.take_looked_up(nullptr), work(2));
  EXPECT_EQ(queue_.pending_lookups(1).front().step, 3);
  queue_.put_back(work(2));
  const std::vector<PendingLookup> pending = queue_.pending_lookups(1);
  ASSERT_EQ(pending.size(), 2U);
  EXPECT_EQ(pending[0].step, 2);
  EXPECT_EQ(pending[1].step, 3);
  train(2);
}

TEST_F(StepQueueTest, WorksGoRoundInTheOrderOfTheirSteps) {
  queue_.add_free(work(1));
  EXPECT_EQ(queue_.take_free(), work(1));
  EXPECT_TRUE(queue_.wait_for_room(1));
  queue_.add_planned(work(1));
  EXPECT_EQ(queue_.first_planned(), work(1));
  EXPECT_EQ(queue_.first_planned(), work(1));  // until it is passed on
  queue_.pass_on(work(1));
  train(1);
  EXPECT_EQ(queue_.take_free(), work(1));
  EXPECT_FALSE(queue_.has_ended());
  queue_.close_planned();
  EXPECT_TRUE(queue_.has_ended());
  EXPECT_EQ(queue_.first_planned(), nullptr);
  EXPECT_EQ(queue_.take_looked_up(nullptr), nullptr);
  EXPECT_EQ(queue_.take_gradient(), nullptr);
}

TEST_F(StepQueueTest, TellsTheDriverThatTheDenseStageWaitsForALookup) {
  const auto is_wanted = [](const StepQueue::State& state) { return state.is_wanted; };
  std::thread dense([&] { EXPECT_EQ(queue_.take_looked_up(nullptr), work(1)); });
  EXPECT_TRUE(queue_.wait(is_wanted));
  look_up(1);
  dense.join();
  EXPECT_TRUE(queue_.wait([&](const StepQueue::State& state) { return !is_wanted(state); }));
  look_up(2);
  EXPECT_EQ(queue_.take_looked_up(nullptr), work(2));  // without waiting
  EXPECT_TRUE(queue_.wait([&](const StepQueue::State& state) { return !is_wanted(state); }));
}

TEST_F(StepQueueTest, RefusesStepsOutOfOrder) {
  EXPECT_THROW(queue_.add_planned(work(2)), Error);
  queue_.add_planned(work(1));
  EXPECT_THROW(queue_.pass_on(work(2)), Error);
  queue_.pass_on(work(1));
  EXPECT_THROW(queue_.retire(work(2)), Error);
  EXPECT_THROW(queue_.finish(work(2)), Error);
}

TEST_F(StepQueueTest, AWorkIsFreeOnceTheDriverAndTheDenseStageAreDoneWithIt) {
  look_up(1);
  look_up(2);
  train(1);
  ASSERT_EQ(queue_.take_looked_up(nullptr), work(2));
  queue_.submit_gradient(work(2));
  ASSERT_EQ(queue_.take_gradient(), work(2));
  queue_.retire(work(2));  // the dense stage still reads its probabilities
  queue_.add_free(work(3));
  EXPECT_EQ(queue_.take_free(), work(1));
  EXPECT_EQ(queue_.take_free(), work(3));
  queue_.finish(work(2));
  EXPECT_EQ(queue_.take_free(), work(2));
}

TEST_F(StepQueueTest, APlannerWaitsForRoom) {
  queue_.add_planned(work(1));
  queue_.add_planned(work(2));
  std::thread planner([&] {
    EXPECT_TRUE(queue_.wait_for_room(2));
    queue_.add_planned(work(3));
  });
  const bool waited =
      queue_.wait([](const StepQueue::State& state) { return state.num_planned == 2; });
  EXPECT_TRUE(waited);
  queue_.pass_on(work(1));
  EXPECT_TRUE(queue_.wait([](const StepQueue::State& state) {
    return state.num_planned == 2 && state.num_looked_up == 1;
  }));
  planner.join();
}

TEST_F(StepQueueTest, StoppingEndsAllWaiting) {
  std::thread dense([&] { EXPECT_EQ(queue_.take_looked_up(nullptr), nullptr); });
  std::thread planner([&] { EXPECT_EQ(queue_.take_free(), nullptr); });
  std::thread driver([&] {
    EXPECT_FALSE(queue_.wait([](const StepQueue::State&) { return false; }));
    EXPECT_EQ(queue_.take_gradient(), nullptr);
  });
  queue_.stop();
  dense.join();
  planner.join();
  driver.join();
  EXPECT_TRUE(queue_.is_stopped());
  EXPECT_FALSE(queue_.wait_for_room(1));
  queue_.wait_retired(7);  // returns
}

TEST_F(StepQueueTest, TheFirstErrorComesOutAtTheDenseSide) {
  queue_.fail(std::make_exception_ptr(std::runtime_error("first")));
  queue_.fail(std::make_exception_ptr(std::logic_error("second")));
  EXPECT_THROW(queue_.take_looked_up(nullptr), std::runtime_error);
  EXPECT_THROW(queue_.wait_retired(1), std::runtime_error);
  EXPECT_THROW(queue_.pending_lookups(0), std::runtime_error);
  EXPECT_EQ(queue_.take_free(), nullptr);
}

TEST_F(StepQueueTest, ASignalEndsTheWaitForALookup) {
  const std::atomic<bool> stop = true;
  EXPECT_EQ(queue_.take_looked_up(&stop), nullptr);
  EXPECT_FALSE(queue_.is_stopped());
}

TEST_F(StepQueueTest, WaitsForRetiredStepsUpToADeadline) {
  look_up(1);
  EXPECT_FALSE(queue_.wait_retired_until(1, steady_clock::now()));
  train(1);
  EXPECT_TRUE(queue_.wait_retired_until(1, steady_clock::now()));
}

TEST_F(StepQueueTest, WaitsForAnUpdateAndALookup) {
  look_up(1);
  train(1);
  queue_.wait_passed(1, 1);  // both are done
  std::thread driver([&] { look_up(2); });
  queue_.wait_passed(1, 2);
  driver.join();
  std::thread dense([&] { train(2); });
  queue_.wait_passed(2, 2);
  dense.join();
  std::thread planner([&] { queue_.close_planned(); });
  queue_.wait_passed(2, 4);  // there is no step 4
  planner.join();
}

TEST_F(StepQueueTest, TheWaitForAnUpdateEndsWithTheError) {
  std::thread driver(
      [&] { queue_.fail(std::make_exception_ptr(std::runtime_error("no more updates"))); });
  EXPECT_THROW(queue_.wait_passed(1, 1), std::runtime_error);
  driver.join();
}

TEST_F(StepQueueTest, PendingLookupsAreThoseOfTheNextStepsWithinTheBound) {
  table::TableSpec table;
  table.dim = 2;
  const embedding::FeatureLayout layout(
      {{.name = "history", .pooling = Pooling::kSequence, .max_length = 1}}, {table});
  work(2)->batch.num_examples = 1;
  work(2)->inputs.begin(work(2)->batch, layout);
  work(2)->inputs.restore({1.0F, 2.0F}, {1.0F});
  work(2)->read_version = 0;
  look_up(1);
  look_up(2);
  look_up(3);
  look_up(4);
  train(1);
  const std::vector<PendingLookup> pending = queue_.pending_lookups(1);
  ASSERT_EQ(pending.size(), 2U);
  EXPECT_EQ(pending[0].step, 2);
  EXPECT_EQ(pending[0].read_version, 0);
  EXPECT_EQ(pending[0].pooled, (std::vector<float>{1.0F, 2.0F}));
  EXPECT_EQ(pending[0].mask, std::vector<float>{1.0F});
  EXPECT_EQ(pending[1].step, 3);
}

TEST_F(StepQueueTest, PendingLookupsAreFewerAtTheEndOfTheData) {
  look_up(1);
  look_up(2);
  train(1);
  queue_.close_planned();
  EXPECT_EQ(queue_.pending_lookups(1).size(), 1U);
}

TEST_F(StepQueueTest, CountsHowOldTheStateWasThatWasRead) {
  work(3)->read_version = 0;  // two older than sync's
  work(4)->read_version = 0;  // beyond the bound, as in async
  for (std::int64_t step = 1; step <= 4; ++step) look_up(step);
  EXPECT_EQ(queue_.staleness_histogram(), (std::vector<std::int64_t>{2, 0, 1, 1}));
}

}  // namespace
}  // namespace satrap::pipeline
