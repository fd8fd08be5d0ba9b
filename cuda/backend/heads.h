#pragma once

#include <cstdint>

#include "cuda/backend/sets.h"
#include "satrap/backend/views.h"

namespace satrap::backend {

/// Tells of tags in order whether occurrence j is the first of its key, and the first of its set.
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
