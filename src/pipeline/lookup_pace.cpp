#include "src/pipeline/lookup_pace.h"

#include <algorithm>

namespace satrap::pipeline {
namespace {

double seconds_between(LookupPace::Time begin, LookupPace::Time end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

LookupPace::LookupPace(std::int64_t max_staleness, std::int64_t max_open)
    : max_staleness_(max_staleness),
      steps_(static_cast<std::size_t>(max_open + max_staleness + 2)) {}

std::int64_t LookupPace::request(std::int64_t step, Time now) {
  const MutexLock lock(mutex_);
  if (first_ == 0) first_ = step;
  slot(step) = {.step = step, .requested = now, .sent = {}, .is_newest = false};
  const std::int64_t staleness = reads_newest(step) ? 0 : needed();
  least_ = std::max(least_, step - 1 - staleness);
  return least_;
}

// With a bound of 1 there is nothing to choose.
bool LookupPace::begins(std::int64_t steps) const {
  if (max_staleness_ <= 1) return false;
  return steps == 2 || steps == 16 || steps == 128 || (steps > 0 && steps % kEvery == 0);
}

bool LookupPace::reads_newest(std::int64_t step) const {
  const std::int64_t steps = step - first_;
  return begins(steps) || begins(steps - 1) || begins(steps - 2);
}

void LookupPace::note_sent(std::int64_t step, Time now) {
  const MutexLock lock(mutex_);
  slot(step).sent = now;
  const Step& last = slot(step - 1);
  if (last.step != step - 1 || step - 1 == first_ || reads_newest(step)) return;
  const double seconds = seconds_between(last.sent, now);
  // A pause, for an evaluation or a checkpoint, is no step.
  const double most = step_seconds_ == 0.0 ? seconds : 2 * step_seconds_;
  step_seconds_ +=
      (step_seconds_ == 0.0 ? 1.0 : kWeight) * (std::min(seconds, most) - step_seconds_);
}

void LookupPace::note_pooled(std::int64_t step, std::int64_t read_version, Time now) {
  const MutexLock lock(mutex_);
  const Step& last = slot(step - 1);
  if (read_version != step - 1) return;
  slot(step).is_newest = true;
  if (last.step != step - 1 || !last.is_newest || begins(step - 2 - first_)) return;
  const Time begin = std::max(last.sent, slot(step).requested);
  latencies_[static_cast<std::size_t>(num_latencies_++ % kSamples)] = seconds_between(begin, now);
}

std::int64_t LookupPace::staleness() const {
  const MutexLock lock(mutex_);
  return needed();
}

std::int64_t LookupPace::needed() const {
  if (num_latencies_ == 0 || step_seconds_ == 0.0) return std::min<std::int64_t>(max_staleness_, 1);
  std::array<double, kSamples> sorted = latencies_;
  const auto end = sorted.begin() + std::min<std::int64_t>(num_latencies_, kSamples);
  const auto median = sorted.begin() + (end - sorted.begin()) / 2;
  std::nth_element(sorted.begin(), median, end);
  const double steps =
      std::min(kMargin * *median / step_seconds_, static_cast<double>(max_staleness_));
  return std::min(max_staleness_, 1 + static_cast<std::int64_t>(steps));
}

}  // namespace satrap::pipeline
