#include "src/loader/loader_list.h"

#include <algorithm>
#include <string>

#include "satrap/core/text.h"
#include "src/loader/loader_wire.h"

namespace satrap::loader {

std::vector<std::int64_t> LoaderList::find() {
  const std::optional<std::string> text = store_->get(kCountKey);
  const std::int64_t count = text ? parse_number<std::int64_t>(*text).value_or(0) : 0;
  std::vector<std::int64_t> found;
  for (std::int64_t number = 0; number < count; ++number) {
    {
      const std::lock_guard lock(mutex_);
      const auto lost = lost_.find(number);
      if (lost != lost_.end() && Clock::now() - lost->second < kAgain) continue;
    }
    if (store_->get(entry_key(number))) found.push_back(number);
  }
  return found;
}

bool LoaderList::has_others(const std::vector<std::int64_t>& used) {
  return std::ranges::any_of(
      find(), [&](std::int64_t number) { return std::ranges::find(used, number) == used.end(); });
}

void LoaderList::lose(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  lost_[number] = Clock::now();
}

void LoaderList::forget_losses() {
  const std::lock_guard lock(mutex_);
  lost_.clear();
}

}  // namespace satrap::loader
