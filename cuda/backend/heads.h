#pragma once

#include <cstdint>

#include "cuda/backend/sets.h"
#include "satrap/backend/views.h"

namespace satrap::backend {

inline constexpr std::uint64_t kUnusedTag = ~std::uint64_t{0};  // sorts after all tags

/// The sort looks at half of a tag only, which makes it half as long. Two keys of a batch are
/// rarely equal there: of a million, about a hundred pairs. Such *mixed runs* are put in order
/// afterwards.
__device__ inline std::uint32_t prefix_of(std::uint64_t tag) {
  return static_cast<std::uint32_t>(tag >> 32);
}

/// Of tags in order: whether occurrence j is the first of its key, and the first of its set.
struct HeadAt {
  const std::uint64_t* tags;
  std::int64_t num_sets;

  __device__ Count2 operator()(std::int64_t j) const {
    const std::uint64_t tag = tags[j];
    const bool first = j == 0;
    const std::uint64_t before = first ? 0 : tags[j - 1];
    const bool head = tag != kUnusedTag && (first || tag != before);
    const bool set_head = head && (first || set_of(tag, num_sets) != set_of(before, num_sets));
    return {head ? 1U : 0U, set_head ? 1U : 0U};
  }
};

}  // namespace satrap::backend
