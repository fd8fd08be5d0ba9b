#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/embedding/row_access.h"
#include "satrap/job/feature_spec.h"
#include "satrap/table/table_spec.h"

namespace satrap::pipeline {

/// A driver's calls for the rows of a batch.
enum class RowCall { kPlan, kRequest, kWait, kUpdate, kSkip, kTaken };

/// A RowAccess without rows, with one feature of 2 columns, for batches without ids. It records the
/// calls, and delays them or fails as a test requires. Thread-safe.
class FakeRowAccess final : public embedding::RowAccess {
 public:
  const embedding::FeatureLayout& layout() const override { return layout_; }
  ThreadPool& pool() const override { return pool_; }
  std::unique_ptr<embedding::BatchRows> make_rows() override {
    return std::make_unique<Rows>(*this);
  }
  std::int64_t look_ahead() const override { return horizon; }
  void look_at(const data::Batch&, std::int64_t step) override {
    const std::lock_guard lock(mutex_);
    if (horizon > 0) calls_.push_back(concat("look at ", step));
  }
  std::int64_t horizon = 0;                  // set before use
  std::atomic<std::int64_t> num_pooled = 0;  // calls of pool()

  void stop() override {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  bool is_stopped() const {
    const std::lock_guard lock(mutex_);
    return is_stopped_;
  }

  /// "plan 1", "request 1", "wait 1", "update 1" or "skip 1", "taken 1": the calls that have
  /// returned, in order.
  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  /// Blocks until this call has returned.
  void wait_for(RowCall call, std::int64_t step) {
    std::unique_lock lock(mutex_);
    wait_until(lock, [&] { return std::ranges::find(calls_, text(call, step)) != calls_.end(); });
  }

  /// Makes such calls wait from now on, each until open_gate() of its kind.
  void close_gate(RowCall call) {
    const std::lock_guard lock(mutex_);
    closed_.insert(call);
  }
  void open_gate(RowCall call) {
    const std::lock_guard lock(mutex_);
    closed_.erase(call);
    changed_.notify_all();
  }
  /// Blocks until such a call waits at its gate.
  void wait_for_waiting(RowCall call) {
    std::unique_lock lock(mutex_);
    wait_until(lock, [&] { return waiting_[call] > 0; });
  }

  /// Makes this call of this step fail.
  void fail(RowCall call, std::int64_t step) {
    const std::lock_guard lock(mutex_);
    failing_ = {call, step};
  }

  /// Sets the version that the owner of the rows reports for `step`; by default it reports none.
  void set_version(std::int64_t step, std::int64_t version) {
    const std::lock_guard lock(mutex_);
    versions_[step] = version;
  }

  /// The least_version with which `step` was requested.
  std::int64_t wish_of(std::int64_t step) const {
    const std::lock_guard lock(mutex_);
    return wishes_.at(step);
  }

 private:
  void note_wish(std::int64_t step, std::int64_t least_version) {
    const std::lock_guard lock(mutex_);
    wishes_[step] = least_version;
  }

  class Rows final : public embedding::PlannedRows {
   public:
    explicit Rows(FakeRowAccess& access)
        : PlannedRows(access.layout_, access.pool_), access_(access) {}

    void make_plan(embedding::Planner& planner,
                   const data::Batch& batch,
                   std::int64_t step) override {
      step_ = step;
      planner.plan(batch, plan_);
      access_.enter(RowCall::kPlan, step);
    }
    void request(std::int64_t step, std::int64_t least_version) override {
      access_.note_wish(step, least_version);
      access_.enter(RowCall::kRequest, step);
    }
    std::optional<std::int64_t> wait() override {
      access_.enter(RowCall::kWait, step_);
      return access_.version_of(step_);
    }
    void read(embedding::Planner& planner, const data::Batch& batch) override {
      planner.plan(batch, plan_);
    }
    void wait_taken() override { access_.enter(RowCall::kTaken, step_); }

   protected:
    Addresses addresses() const override {
      ++access_.num_pooled;
      return {{}, 0};
    }
    void apply(const float*, std::int64_t step) override { access_.enter(RowCall::kUpdate, step); }
    void skip(std::int64_t step) override { access_.enter(RowCall::kSkip, step); }

   private:
    FakeRowAccess& access_;
    std::int64_t step_ = 0;
  };

  static std::vector<table::TableSpec> tables() {
    table::TableSpec spec;
    spec.name = "user";
    spec.dim = 2;
    return {spec};
  }
  static std::string text(RowCall call, std::int64_t step) {
    constexpr const char* kNames[] = {"plan", "request", "wait", "update", "skip", "taken"};
    return concat(kNames[static_cast<std::size_t>(call)], " ", step);
  }
  template <class Condition>
  void wait_until(std::unique_lock<std::mutex>& lock, Condition&& condition) {
    if (!changed_.wait_for(lock, std::chrono::seconds(60), condition)) {
      throw std::runtime_error("what the test waits for does not come");
    }
  }

  void enter(RowCall call, std::int64_t step) {
    std::unique_lock lock(mutex_);
    ++waiting_[call];
    changed_.notify_all();
    wait_until(lock, [&] { return !closed_.contains(call); });
    --waiting_[call];
    if (failing_ == std::pair(call, step)) {
      throw Error(ErrorCode::kUnavailable, text(call, step) + " fails, as it was told to");
    }
    calls_.push_back(text(call, step));
    changed_.notify_all();
  }
  std::optional<std::int64_t> version_of(std::int64_t step) {
    const std::lock_guard lock(mutex_);
    const auto found = versions_.find(step);
    return found == versions_.end() ? std::nullopt : std::optional(found->second);
  }

  const embedding::FeatureLayout layout_{
      {{.name = "user", .table = TableId{0}, .pooling = Pooling::kSum, .max_length = 1}},
      tables()};
  mutable ThreadPool pool_{1};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> calls_;
  std::set<RowCall> closed_;
  std::map<RowCall, int> waiting_;
  std::pair<RowCall, std::int64_t> failing_ = {RowCall::kPlan, 0};
  std::map<std::int64_t, std::int64_t> versions_;
  std::map<std::int64_t, std::int64_t> wishes_;  // by step
  bool is_stopped_ = false;
};

}  // namespace satrap::pipeline
