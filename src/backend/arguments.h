#pragma once

#include <cstdint>
#include <span>

#include "satrap/backend/operations.h"
#include "satrap/core/error.h"

/// Checks of the arguments of an operation that the host can make, for any device.
namespace satrap::backend {

inline void check_arguments(const Bags& bags, std::int64_t num_sets, const PlanView& plan) {
  SATRAP_CHECK(plan.num_ids == bags.num_ids && plan.num_ids <= plan.max_ids, "a plan of ",
               plan.num_ids, " ids, at most ", plan.max_ids, ", for a batch of ", bags.num_ids);
  SATRAP_CHECK(num_sets > 0, "a cache of ", num_sets, " sets");
}

inline void check_arguments(const CacheView& cache, const ResolveArguments& arguments) {
  SATRAP_CHECK(arguments.completed < arguments.batch, "batch ", arguments.batch,
               " cannot be resolved once batch ", arguments.completed, " is completed");
  SATRAP_CHECK(arguments.max_overflow >= 0 && arguments.num_shared >= 0 &&
                   arguments.max_overflow + arguments.num_shared <= cache.size.overflow_rows,
               arguments.max_overflow, " overflow rows for a batch, beside ", arguments.num_shared,
               " of earlier ones, of ", cache.size.overflow_rows);
  SATRAP_CHECK(arguments.max_overflow == 0 || arguments.overflow_slots != nullptr,
               "overflow_slots is null");
  SATRAP_CHECK(arguments.num_shared == 0 || arguments.shared != nullptr, "shared is null");
  SATRAP_CHECK(arguments.halving_log2 < 32, "halving_log2 is ", arguments.halving_log2);
  SATRAP_CHECK(arguments.num_next_uses == 0 || arguments.next_uses != nullptr, "next_uses is null");
}

inline void check_arguments(const WindowView& window, const TouchArguments& arguments) {
  const std::int64_t ahead = std::int64_t{arguments.batch} - arguments.resolved;
  SATRAP_CHECK(ahead > 0 && ahead <= window.size.depth, "batch ", arguments.batch,
               " cannot be touched when batch ", arguments.resolved,
               " has been resolved, in a window of ", window.size.depth, " batches");
}

inline void check_arguments(const CacheView& cache, std::int64_t first_set, std::int64_t num_sets) {
  SATRAP_CHECK(first_set >= 0 && first_set + num_sets <= cache.size.num_sets, "sets ", first_set,
               " + ", num_sets, " of ", cache.size.num_sets);
}

inline void check_added(std::span<const float* const> vectors) {
  SATRAP_CHECK(!vectors.empty() && std::ssize(vectors) <= kMaxAdded, vectors.size(),
               " vectors to add, of at most ", kMaxAdded);
}

}  // namespace satrap::backend
