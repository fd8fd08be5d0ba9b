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
  const std::lock_guard lock(mutex_);
  slot(step) = {.step = step, .requested = now, .sent = {}};
  const std::int64_t staleness = needed();
  return staleness == 0 ? 0 : std::max<std::int64_t>(0, step - 1 - staleness);
}

void LookupPace::note_sent(std::int64_t step, Time now) {
  const std::lock_guard lock(mutex_);
  slot(step).sent = now;
}

void LookupPace::note_pooled(const Pooled& pooled) {
  // A shorter wait is none: the rows stood ready, and when they came is not known. If that goes on,
  // the link is not what the dense stage waits for.
  constexpr std::chrono::microseconds kWait(50);
  const std::lock_guard lock(mutex_);
  const Step& cause = slot(pooled.read_version);
  if (pooled.dense_seconds == 0.0 || cause.step != pooled.read_version) return;
  double latency = seconds_between(pooled.arrived, pooled.now);
  const bool has_waited = pooled.arrived - pooled.waited > kWait;
  num_ready_ = has_waited ? 0 : num_ready_ + 1;
  if (num_ready_ > 0 && num_ready_ < kMemory) return;
  if (has_waited) {
    latency += seconds_between(std::max(cause.sent, slot(pooled.step).requested), pooled.arrived);
  }
  const double weight = latency_ == 0.0 ? 1.0 : 1.0 / static_cast<double>(kMemory);
  latency_ += weight * (latency - latency_);
  dense_ += weight * (pooled.dense_seconds - dense_);
}

std::int64_t LookupPace::staleness() const {
  const std::lock_guard lock(mutex_);
  return needed();
}

std::int64_t LookupPace::needed() const {
  if (latency_ == 0.0) return 0;
  const double steps = std::min(latency_ / dense_, static_cast<double>(max_staleness_));
  return std::min(max_staleness_, 1 + static_cast<std::int64_t>(steps));
}

}  // namespace satrap::pipeline
