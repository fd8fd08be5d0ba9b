#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include "satrap/collective/communicator.h"

namespace satrap::pipeline {

inline std::int64_t sum_of(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// Divides `values` into consecutive parts of counts[i] * width elements, as bytes.
template <class Bytes, class T>
std::vector<Bytes> parts_of(std::span<T> values,
                            std::span<const std::int64_t> counts,
                            std::int64_t width) {
  std::vector<Bytes> parts;
  for (const std::int64_t count : counts) {
    const auto size = static_cast<std::size_t>(count * width);
    if constexpr (std::is_const_v<T>) {
      parts.push_back(std::as_bytes(values.first(size)));
    } else {
      parts.push_back(std::as_writable_bytes(values.first(size)));
    }
    values = values.subspan(size);
  }
  return parts;
}

/// An all-to-all of values of `width` elements: to_counts[r] of them to rank r, from_counts[r] from
/// it, each in the order of the ranks.
template <class T>
void exchange(collective::Communicator& group,
              std::span<const T> to,
              std::span<const std::int64_t> to_counts,
              std::span<T> from,
              std::span<const std::int64_t> from_counts,
              std::int64_t width,
              net::Deadline deadline) {
  group.all_to_all(parts_of<std::span<const std::byte>>(to, to_counts, width),
                   parts_of<std::span<std::byte>>(from, from_counts, width), deadline);
}

}  // namespace satrap::pipeline
