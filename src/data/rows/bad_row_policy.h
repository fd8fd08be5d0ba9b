#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "satrap/core/mutex.h"
#include "satrap/data/bad_rows.h"
#include "satrap/data/config.h"

namespace satrap::data {

/// Handles bad rows, over all passes of a source: counts them, shows the first ones, and ends
/// reading when there are too many. One thread at a time calls add() and end_pass(), in the order
/// of the rows. The rows of a rank are those that it parses itself.
class BadRowPolicy {
 public:
  using Log = std::function<void(const std::string&)>;

  /// `stop`: the first bad row ends reading. `max_shown`: bad rows that are shown one by one.
  BadRowPolicy(bool stop,
               const BadRowLimit& limit,
               Log log,
               std::int64_t max_shown = BadRows::kMaxMessages);
  virtual ~BadRowPolicy() = default;

  /// `num_good`: the rows of the same block that could be read. Throws Error(kInvalidData) if
  /// reading must end. A share of the rows is a limit only when kMinRows have been read.
  virtual void add(const BadRows& bad, std::int64_t num_good);

  /// From now on add() also appends to `copy`; null: to none.
  void copy_to(BadRows* copy) { copy_ = copy; }

  /// The end of a pass. If it had all rows, a limit of a share holds for however few there were: a
  /// run that resumes shortly before the end must not be judged by the rest. The first such pass
  /// with more than kMuch bad rows logs a warning.
  virtual void end_pass(bool had_all_rows);

  /// Thread-safe.
  std::int64_t count() const { return count_.load(std::memory_order_relaxed); }

  /// Rows that were left out. Thread-safe.
  std::int64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }

  /// How many for which reason. Thread-safe.
  std::map<std::string, std::int64_t> reasons() const;

  /// Message of the first bad row, "" if there was none.
  const std::string& first() const { return first_; }

  static constexpr std::int64_t kMinRows = 10'000;
  static constexpr double kMuch = 0.01;

 private:
  void check_share() const;
  std::string describe() const;

  const bool stop_;
  const BadRowLimit limit_;
  const Log log_;
  const std::int64_t max_shown_;
  std::atomic<std::int64_t> count_{0}, left_out_{0};
  BadRows* copy_ = nullptr;
  std::int64_t num_rows_ = 0;  // good, bad and left out
  std::int64_t num_shown_ = 0;
  bool has_warned_ = false;
  std::string first_;
  mutable Mutex mutex_;
  std::map<std::string, std::int64_t> reasons_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace satrap::data
