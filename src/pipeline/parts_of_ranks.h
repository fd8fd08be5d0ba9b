#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "satrap/collective/communicator.h"

namespace satrap::pipeline {

inline std::int64_t sum_of(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// Divides bytes into consecutive parts of counts[i] values of so many bytes.
template <class Bytes>
std::vector<Bytes> parts_of(Bytes all,
                            std::span<const std::int64_t> counts,
                            std::size_t bytes_per_value) {
  std::vector<Bytes> parts;
  for (const std::int64_t count : counts) {
    const std::size_t size = static_cast<std::size_t>(count) * bytes_per_value;
    parts.push_back(all.first(size));
    all = all.subspan(size);
  }
  return parts;
}

/// An all-to-all: to_counts[r] values to rank r, from_counts[r] from it, each in the order of the
/// ranks.
template <class T>
void exchange(collective::Communicator& group,
              std::span<const T> to,
              std::span<const std::int64_t> to_counts,
              std::span<T> from,
              std::span<const std::int64_t> from_counts,
              net::Deadline deadline) {
  group.all_to_all(parts_of(std::as_bytes(to), to_counts, sizeof(T)),
                   parts_of(std::as_writable_bytes(from), from_counts, sizeof(T)), deadline);
}

}  // namespace satrap::pipeline
