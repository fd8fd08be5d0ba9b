#include "satrap/data/id_texts.h"

namespace satrap::data {

void IdTexts::add(std::uint64_t id, std::string_view text) {
  constexpr std::size_t kShownBytes = 40;
  const MutexLock lock(mutex_);
  if (texts_.size() >= kMaxTexts || texts_.contains(id)) return;
  std::string shown(text.substr(0, kShownBytes));
  if (text.size() > kShownBytes) shown += "...";
  texts_.emplace(id, std::move(shown));
}

std::string IdTexts::find(std::uint64_t id) const {
  const MutexLock lock(mutex_);
  const auto found = texts_.find(id);
  return found == texts_.end() ? "" : found->second;
}

}  // namespace satrap::data
