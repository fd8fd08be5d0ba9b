#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/embedding/cached_training.h"

namespace satrap::embedding {

/// A planner that runs beside lookups and updates.
class PlannerBeside {
 public:
  PlannerBeside(CachedTraining& training, std::vector<data::Batch> batches)
      : training_(training), batches_(std::move(batches)) {
    for (std::int64_t i = 0; i < training.max_in_flight(); ++i) free_.push_back(take());
    thread_ = std::thread([this] {
      try {
        run();
      } catch (const Error& error) {
        const std::lock_guard lock(mutex_);
        error_ = error.what();
        changed_.notify_all();
      }
    });
  }
  ~PlannerBeside() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
      changed_.notify_all();
    }
    training_.cached->stop();
    thread_.join();
  }

  /// Looks up and updates all steps with the planner beside; the error that ended it, if any.
  std::string train() {
    const auto num_steps = std::ssize(batches_);
    while (training_.num_updated < num_steps) {
      const std::int64_t last = training_.options.staleness.last_reader(training_.num_updated);
      while (training_.num_looked_up < std::min(num_steps, last)) {
        if (!take_requested()) return error_;
        training_.look_up();
        if (::testing::Test::HasFatalFailure()) return "a lookup differs";
      }
      training_.update();
      const std::lock_guard lock(mutex_);
      free_.push_back(std::move(training_.free_rows.back()));
      training_.free_rows.pop_back();
      changed_.notify_all();
    }
    return "";
  }

 private:
  std::unique_ptr<BatchRows> take() { return training_.cached->make_rows(); }

  void run() {
    std::size_t num_shown = 0;
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      std::unique_ptr<BatchRows> rows;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return is_stopped_ || !free_.empty(); });
        if (is_stopped_) return;
        rows = std::move(free_.back());
        free_.pop_back();
      }
      while (num_shown <= i ||
             (num_shown < batches_.size() &&
              num_shown - i <= static_cast<std::size_t>(training_.cached->look_ahead()))) {
        training_.cached->look_at(batches_[num_shown], static_cast<std::int64_t>(num_shown + 1));
        ++num_shown;
      }
      const auto step = static_cast<std::int64_t>(i + 1);
      rows->make_plan(training_.planner, batches_[i], step);
      rows->request(step);
      const std::lock_guard lock(mutex_);
      requested_.push_back(std::move(rows));
      changed_.notify_all();
    }
  }

  bool take_requested() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !requested_.empty() || !error_.empty(); });
    if (requested_.empty()) return false;
    const std::int64_t step = ++training_.num_requested;
    CachedTraining::Step& next = training_.steps[step];
    next.batch = batches_[static_cast<std::size_t>(step - 1)];
    next.rows = std::move(requested_.front());
    requested_.pop_front();
    lock.unlock();
    next.reference = training_.reference.make_rows();
    next.reference->make_plan(training_.reference_planner, next.batch, step);
    training_.num_needed +=
        std::ssize(static_cast<const PlannedRows&>(*next.reference).plan().keys);
    return true;
  }

  CachedTraining& training_;
  const std::vector<data::Batch> batches_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<BatchRows>> free_;
  std::deque<std::unique_ptr<BatchRows>> requested_;
  bool is_stopped_ = false;
  std::string error_;
  std::thread thread_;
};

}  // namespace satrap::embedding
