#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>

#include "satrap/core/error.h"
#include "satrap/table/row_store.h"

namespace satrap::table {

/// A RowStore that is slow and fails as a test requires: each call first waits at a gate, and then
/// throws or forwards to the real store.
class FakeRowStore final : public RowStore {
 public:
  explicit FakeRowStore(RowStore& store) : store_(store) {}

  void fetch(std::span<const Key> keys, std::span<std::byte* const> rows) override {
    enter();
    store_.fetch(keys, rows);
  }

  void put(std::int64_t step,
           std::span<const Key> keys,
           std::span<const std::byte* const> rows) override {
    enter();
    store_.put(step, keys, rows);
  }

  /// Makes calls wait from now on, each until let() admits one more.
  void close_gate() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  void let(std::int64_t calls) {
    const std::lock_guard lock(mutex_);
    num_let_ += calls;
    changed_.notify_all();
  }
  void wait_for_waiting(std::int64_t calls) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_waiting_ >= calls; });
  }

  /// Makes the next calls fail, without touching any row.
  void fail_next(std::int64_t calls) {
    const std::lock_guard lock(mutex_);
    num_failing_ = calls;
  }

 private:
  void enter() {
    std::unique_lock lock(mutex_);
    if (is_closed_) {
      ++num_waiting_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return num_let_ > 0; });
      --num_waiting_;
      --num_let_;
    }
    if (num_failing_ > 0) {
      --num_failing_;
      throw Error(ErrorCode::kUnavailable, "the store fails, as it was told to");
    }
  }

  RowStore& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_closed_ = false;
  std::int64_t num_let_ = 0, num_waiting_ = 0, num_failing_ = 0;
};

}  // namespace satrap::table
