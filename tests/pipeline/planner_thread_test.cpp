#include "satrap/pipeline/planner_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/pipeline/driver_fixture.h"

namespace satrap::pipeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// `num_batches` batches of one example without ids, and then the end, an error, or a wait until it
/// is closed.
class FewBatches final : public data::BatchSource {
 public:
  enum class End { kData, kError, kNever };
  FewBatches(std::int64_t num_batches, End end) : num_batches_(num_batches), end_(end) {}

  bool next(data::Batch& batch) override {
    if (position_.batches < num_batches_) {
      ++position_.batches;
      batch.num_examples = 1;
      batch.num_features = 1;
      batch.labels = {0};
      batch.offsets = {0, 0};
      return true;
    }
    if (end_ == End::kError) throw Error(ErrorCode::kInvalidData, "log.csv:7: not a number");
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return end_ == End::kData || closed_; });
    return false;
  }
  data::DataPosition position() const override { return position_; }
  data::ReadStats stats() const override { return {}; }
  std::int64_t rows_per_epoch() const override { return end_ == End::kNever ? 0 : 100; }
  void close() override {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  const std::int64_t num_batches_;
  const End end_;
  data::DataPosition position_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
};

/// Passes works on at once; refuses those from `refused` on, as if it had been stopped.
class PassingDriver final : public StepDriver {
 public:
  PassingDriver(StepQueue& queue, embedding::RowAccess& access, StageTimers& timers)
      : StepDriver(queue, access, {}, timers) {}

  bool submit(Work* work) override {
    if (work->step == refused) return false;
    queue_.add_planned(work);
    work->read_version = work->step - 1;
    queue_.pass_on(work);
    return true;
  }
  void close() override { queue_.close_planned(); }
  void wait_applied(std::int64_t) override {}
  bool wait_applied_for(std::int64_t, std::chrono::milliseconds) override { return true; }
  void stop() override { queue_.stop(); }

  std::int64_t refused = 0;
};

class PlannerThreadTest : public DriverTest {
 protected:
  using End = FewBatches::End;

  /// Starts the thread, with batches and works for the steps from `first_step` on.
  PlannerThread& start(std::int64_t num_batches,
                       End end,
                       std::int64_t first_step,
                       std::int64_t last_step) {
    make_queue({.first_step = first_step});
    source_ = std::make_unique<FewBatches>(num_batches, end);
    batches_ = std::make_unique<GlobalBatches>(*source_, data::Schema{}, data::DataPosition{},
                                               nullptr, cluster_, timers_);
    driver_ = std::make_unique<PassingDriver>(*queue_, access_, timers_);
    driver_->refused = refused_;
    for (std::int64_t step = 1; step <= num_works_; ++step) queue_->add_free(work(step));
    thread_ = std::make_unique<PlannerThread>(*batches_, *queue_, *driver_, first_step, last_step);
    return *thread_;
  }

  /// Trains each step up to the end of the data; returns the steps, or throws why it is no end.
  std::vector<std::int64_t> train_all() {
    std::vector<std::int64_t> steps;
    while (Work* work = queue_->take_looked_up(nullptr)) {
      steps.push_back(work->step);
      queue_->submit_gradient(work);
      queue_->finish(work);
      if (Work* const trained = queue_->take_gradient())
        queue_->retire(trained);  // else it stopped
    }
    if (batches_->error()) std::rethrow_exception(batches_->error());
    return steps;
  }

  job::JobConfig job_;
  Cluster cluster_{job_, {}};
  std::int64_t num_works_ = 4, refused_ = 0;
  std::unique_ptr<FewBatches> source_;
  std::unique_ptr<GlobalBatches> batches_;
  std::unique_ptr<PassingDriver> driver_;
  std::unique_ptr<PlannerThread> thread_;
};

TEST_F(PlannerThreadTest, PlansEveryBatchUpToTheEndOfTheData) {
  start(3, End::kData, 1, 0);
  EXPECT_THAT(train_all(), ElementsAre(1, 2, 3));
  EXPECT_THAT(access_.calls(), ElementsAre("plan 1", "plan 2", "plan 3"));
}

TEST_F(PlannerThreadTest, DataWithoutABatchHaveNoStep) {
  start(0, End::kData, 1, 0);
  EXPECT_THAT(train_all(), IsEmpty());
}

TEST_F(PlannerThreadTest, EndsAfterTheLastStepAndReadsNoFurther) {
  start(9, End::kData, 1, 2);
  EXPECT_THAT(train_all(), ElementsAre(1, 2));
  thread_.reset();
  EXPECT_EQ(source_->position().batches, 2);
}

TEST_F(PlannerThreadTest, GoesOnFromTheFirstStepOfARun) {
  start(2, End::kData, 7, 0);
  EXPECT_THAT(train_all(), ElementsAre(7, 8));
}

TEST_F(PlannerThreadTest, UsesWorksAgain) {
  num_works_ = 1;
  start(3, End::kData, 1, 0);
  EXPECT_THAT(train_all(), ElementsAre(1, 2, 3));
}

TEST_F(PlannerThreadTest, ABadLineComesOutAtTheDenseSide) {
  start(0, End::kError, 1, 0);
  EXPECT_EQ(message_of(ErrorCode::kInvalidData, [&] { train_all(); }), "log.csv:7: not a number");
}

TEST_F(PlannerThreadTest, AnErrorOfPlanningComesOutAtTheDenseSide) {
  access_.fail(RowCall::kPlan, 1);
  start(3, End::kData, 1, 0);
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { train_all(); }), HasSubstr("plan 1"));
}

TEST_F(PlannerThreadTest, ShowsBatchesAheadAndPlansAllOfThem) {
  access_.horizon = 2;
  start(5, End::kData, 1, 0);
  EXPECT_THAT(train_all(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(access_.calls(),
              ElementsAre("look at 1", "look at 2", "plan 1", "look at 3", "look at 4", "plan 2",
                          "look at 5", "plan 3", "plan 4", "plan 5"));
}

TEST_F(PlannerThreadTest, LooksNoFurtherAheadThanTheLastStep) {
  access_.horizon = 5;
  start(9, End::kData, 1, 3);
  EXPECT_THAT(train_all(), ElementsAre(1, 2, 3));
  thread_.reset();
  EXPECT_EQ(source_->position().batches, 3);
}

TEST_F(PlannerThreadTest, ABadLineAheadComesOutAfterTheBatchesBeforeIt) {
  access_.horizon = 5;
  start(3, End::kError, 1, 0);
  EXPECT_EQ(message_of(ErrorCode::kInvalidData, [&] { train_all(); }), "log.csv:7: not a number");
  EXPECT_THAT(access_.calls(), testing::IsSupersetOf({"plan 1", "plan 2", "plan 3"}));
}

TEST_F(PlannerThreadTest, InputWithoutAKnownEndIsNotReadAhead) {
  access_.horizon = 5;
  start(2, End::kNever, 1, 0);
  EXPECT_EQ(take(1), work(1));
  EXPECT_EQ(take(2), work(2));  // before a third batch arrives
  thread_.reset();
}

TEST_F(PlannerThreadTest, EndsWithADriverThatWasStopped) {
  refused_ = 2;
  start(3, End::kData, 1, 0);
  EXPECT_THAT(train_all(), ElementsAre(1));
}

TEST_F(PlannerThreadTest, EndsWhileItWaitsForABatch) {
  start(1, End::kNever, 1, 0);
  EXPECT_EQ(take(1), work(1));
  thread_.reset();  // joins
  EXPECT_TRUE(queue_->is_stopped());
}

TEST_F(PlannerThreadTest, EndsWhileItWaitsForAFreeWork) {
  num_works_ = 0;
  start(1, End::kData, 1, 0);
  thread_.reset();  // joins
  EXPECT_THAT(access_.calls(), IsEmpty());
}

}  // namespace
}  // namespace satrap::pipeline
