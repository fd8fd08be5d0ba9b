#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "satrap/backend/views.h"

namespace satrap::testing {

/// A simple host version of the window, one key after the other: touch must give the same.
class HostWindow {
 public:
  struct Entry {
    std::uint64_t tag = 0;
    std::uint32_t batch = 0, number = 0;
  };

  explicit HostWindow(const backend::WindowSize& size)
      : size_(size),
        entries_(static_cast<std::size_t>(size.num_sets),
                 std::vector<Entry>(backend::CacheSize::kWays)),
        lines_(static_cast<std::size_t>(size.depth),
               std::vector<std::uint32_t>(static_cast<std::size_t>(size.max_keys))) {}

  std::vector<std::uint32_t>& line(std::uint32_t batch) {
    return lines_[batch % static_cast<std::size_t>(size_.depth)];
  }
  const std::vector<std::vector<Entry>>& entries() const { return entries_; }

  /// `tags` ascend.
  void touch(const std::vector<std::uint64_t>& tags, std::uint32_t batch, std::uint32_t resolved) {
    for (std::size_t u = 0; u < std::min(tags.size(), line(batch).size()); ++u) line(batch)[u] = 0;
    for (std::size_t u = 0; u < tags.size(); ++u) {
      auto& set = entries_[static_cast<std::size_t>(
          (static_cast<unsigned __int128>(tags[u]) * static_cast<std::uint64_t>(size_.num_sets)) >>
          64)];
      auto entry = std::ranges::find_if(
          set, [&](const Entry& p) { return p.batch != 0 && p.tag == tags[u]; });
      if (entry == set.end()) {
        entry = std::ranges::min_element(set, {}, &Entry::batch);
      } else if (entry->batch > resolved && entry->number < line(entry->batch).size()) {
        line(entry->batch)[entry->number] = batch;
      }
      *entry = {tags[u], batch, static_cast<std::uint32_t>(u)};
    }
  }

 private:
  backend::WindowSize size_;
  std::vector<std::vector<Entry>> entries_;        // by set
  std::vector<std::vector<std::uint32_t>> lines_;  // by batch % depth
};

}  // namespace satrap::testing
