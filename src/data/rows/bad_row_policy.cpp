#include "src/data/rows/bad_row_policy.h"

#include <utility>

#include <fmt/format.h>

#include "satrap/core/error.h"

namespace satrap::data {

void BadRows::append(const BadRows& later) {
  left_out += later.left_out;
  if (later.count == 0) return;
  count += later.count;
  last_row = later.last_row;
  for (const auto& [reason, number] : later.reasons) reasons[reason] += number;
  for (const std::string& message : later.messages) {
    if (messages.size() < kMaxMessages) messages.push_back(message);
  }
}

BadRowPolicy::BadRowPolicy(bool stop, const BadRowLimit& limit, Log log, std::int64_t max_shown)
    : stop_(stop), limit_(limit), log_(std::move(log)), max_shown_(max_shown) {}

void BadRowPolicy::add(const BadRows& bad, std::int64_t num_good) {
  num_rows_ += bad.count + num_good + bad.left_out;
  left_out_.fetch_add(bad.left_out, std::memory_order_relaxed);
  if (copy_ != nullptr) copy_->append(bad);
  if (bad.count == 0) return;
  if (first_.empty()) first_ = bad.messages.front();
  {
    const MutexLock lock(mutex_);
    for (const auto& [reason, number] : bad.reasons) reasons_[reason] += number;
  }
  const std::int64_t count = count_.fetch_add(bad.count, std::memory_order_relaxed) + bad.count;
  if (stop_) throw Error(ErrorCode::kInvalidData, bad.messages.front());
  for (const std::string& message : bad.messages) {
    if (num_shown_ == max_shown_) break;
    ++num_shown_;
    log_(concat("bad row skipped: ", message));
    if (num_shown_ == max_shown_ && max_shown_ > 1) {
      log_("further bad rows are counted without being shown");
    }
  }
  if (limit_.rows > 0 && count > limit_.rows) {
    throw Error(ErrorCode::kInvalidData, concat("more than data.max_bad_rows = ", limit_.rows,
                                                " bad rows; the first: ", first_));
  }
  if (num_rows_ >= kMinRows) check_share();
}

std::map<std::string, std::int64_t> BadRowPolicy::reasons() const {
  const MutexLock lock(mutex_);
  return reasons_;
}

void BadRowPolicy::end_pass(bool had_all_rows) {
  if (!had_all_rows && num_rows_ < kMinRows) return;
  check_share();
  if (has_warned_ || static_cast<double>(count()) <= kMuch * static_cast<double>(num_rows_)) return;
  has_warned_ = true;
  log_(concat(describe(), " could not be read; the first: ", first_));
}

void BadRowPolicy::check_share() const {
  if (limit_.share == 0.0 ||
      static_cast<double>(count()) <= limit_.share * static_cast<double>(num_rows_)) {
    return;
  }
  throw Error(ErrorCode::kInvalidData,
              concat(describe(), " cannot be read, more than data.max_bad_rows = ",
                     fmt::format("{:.3g}%", 100 * limit_.share), " allows; the first: ", first_,
                     "; correct the data or what the configuration says about them, or allow more, "
                     "such as data.max_bad_rows=50% (0: any number)"));
}

std::string BadRowPolicy::describe() const {
  return fmt::format("{} of {} rows ({:.1f} %)", count(), num_rows_,
                     100.0 * static_cast<double>(count()) / static_cast<double>(num_rows_));
}

}  // namespace satrap::data
