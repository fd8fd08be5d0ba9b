#include "src/loader/loader_list.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "satrap/core/text.h"
#include "src/loader/loader_wire.h"

namespace satrap::loader {

std::vector<LoaderEntry> LoaderList::find(Clock::time_point now) {
  const std::optional<std::string> text = store_->get(kCountKey);
  const std::int64_t count = text ? parse_number<std::int64_t>(*text).value_or(0) : 0;
  std::vector<LoaderEntry> found;
  for (std::int64_t number = 0; number < count; ++number) {
    if (rests(number, now)) continue;
    if (std::optional<std::string> address = store_->get(entry_key(number))) {
      found.push_back({number, std::move(*address)});
    } else {
      rest(number, kAgainMissing, now);
    }
  }
  return found;
}

void LoaderList::lose(std::int64_t number, Clock::time_point now) { rest(number, kAgain, now); }

void LoaderList::forget_losses() {
  const MutexLock lock(mutex_);
  rests_.clear();
}

bool LoaderList::rests(std::int64_t number, Clock::time_point now) {
  const MutexLock lock(mutex_);
  const auto found = rests_.find(number);
  return found != rests_.end() && now < found->second.end;
}

/// Each rest is twice as long as the one before, and at least `first`.
void LoaderList::rest(std::int64_t number, Clock::duration first, Clock::time_point now) {
  const MutexLock lock(mutex_);
  Rest& rest = rests_[number];
  rest.length = std::min<Clock::duration>(std::max(first, 2 * rest.length), kMaxRest);
  rest.end = now + rest.length;
}

}  // namespace satrap::loader
