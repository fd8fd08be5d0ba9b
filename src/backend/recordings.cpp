#include "satrap/backend/recordings.h"

#include <algorithm>

namespace satrap::backend {

void Recordings::run(std::span<const std::byte> arguments, const Queue& queue) {
  if (device_.is_host()) return queue(stream_, false);
  Entry& entry = entry_of(arguments);
  entry.last_run = ++num_runs_;
  if (!entry.recording) {
    if (entry.num_runs++ < kRunsBefore) return queue(stream_, false);
    if (!recorder_) recorder_.emplace(device_);
    entry.recording.emplace(device_, *recorder_, [&](StreamRef stream) { queue(stream, true); });
  }
  entry.recording->queue(stream_);
}

Recordings::Entry& Recordings::entry_of(std::span<const std::byte> arguments) {
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return std::ranges::equal(entry.arguments, arguments); });
  if (found != entries_.end()) return *found;
  if (entries_.size() < kMax) {
    entries_.emplace_back();
    entries_.back().arguments.assign(arguments.begin(), arguments.end());
    return entries_.back();
  }
  Entry& oldest = *std::ranges::min_element(entries_, {}, &Entry::last_run);
  if (oldest.recording) stream_.wait_until_idle();  // it may still run
  oldest.recording.reset();
  oldest.arguments.assign(arguments.begin(), arguments.end());
  oldest.num_runs = 0;
  return oldest;
}

}  // namespace satrap::backend
