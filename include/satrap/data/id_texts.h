#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "satrap/core/mutex.h"

namespace satrap::data {

/// The texts of ids that are hashes, for people to read: of the first kMaxTexts different ones.
/// Thread-safe.
class IdTexts {
 public:
  static constexpr std::size_t kMaxTexts = 1'000'000;

  void add(std::uint64_t id, std::string_view text);

  /// Long ones are cut; "": unknown.
  std::string find(std::uint64_t id) const;

 private:
  mutable Mutex mutex_;
  std::unordered_map<std::uint64_t, std::string> texts_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace satrap::data
