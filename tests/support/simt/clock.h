#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simt {

/// A vector clock: how much of the work of each stream comes before something.
class Clock {
 public:
  std::int64_t of(std::size_t stream) const {
    return stream < counts_.size() ? counts_[stream] : 0;
  }

  /// What came before `other` comes before this too.
  void join(const Clock& other) {
    if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
    for (std::size_t i = 0; i < other.counts_.size(); ++i) {
      counts_[i] = std::max(counts_[i], other.counts_[i]);
    }
  }

  /// So much of the stream's work comes before this.
  void raise(std::size_t stream, std::int64_t count) {
    if (counts_.size() <= stream) counts_.resize(stream + 1);
    counts_[stream] = std::max(counts_[stream], count);
  }

  /// One more piece of the stream's work.
  void tick(std::size_t stream) {
    if (counts_.size() <= stream) counts_.resize(stream + 1);
    ++counts_[stream];
  }

 private:
  std::vector<std::int64_t> counts_;  // those after the last are 0
};

}  // namespace simt
