#pragma once

#include <cstdint>
#include <iterator>

#include "satrap/backend/operations.h"
#include "satrap/core/error.h"

/// Checks of the arguments of an operation that the host can make, for any device.
namespace satrap::backend {

inline void check_arguments(const BuildPlan& operation) {
  const PlanView& plan = operation.plan;
  const std::int64_t num_ids = operation.bags.num_ids;
  SATRAP_CHECK(plan.num_ids == num_ids && plan.num_ids <= plan.max_ids, "a plan of ", plan.num_ids,
               " ids, at most ", plan.max_ids, ", for a batch of ", num_ids);
  SATRAP_CHECK(operation.num_sets > 0, "a cache of ", operation.num_sets, " sets");
}

inline void check_arguments(const Resolve& operation) {
  const ResolveArguments& arguments = operation.arguments;
  const std::int64_t overflow_rows = operation.cache.size.overflow_rows;
  SATRAP_CHECK(arguments.completed < arguments.batch, "batch ", arguments.batch,
               " cannot be resolved once batch ", arguments.completed, " is completed");
  SATRAP_CHECK(arguments.max_overflow >= 0 && arguments.num_shared >= 0 &&
                   arguments.max_overflow + arguments.num_shared <= overflow_rows,
               arguments.max_overflow, " overflow rows for a batch, beside ", arguments.num_shared,
               " of earlier ones, of ", overflow_rows);
  SATRAP_CHECK(arguments.max_overflow == 0 || arguments.overflow_slots != nullptr,
               "overflow_slots is null");
  SATRAP_CHECK(arguments.num_shared == 0 || arguments.shared != nullptr, "shared is null");
  SATRAP_CHECK(arguments.halving_log2 < 32, "halving_log2 is ", arguments.halving_log2);
  SATRAP_CHECK(arguments.num_next_uses == 0 || arguments.next_uses != nullptr, "next_uses is null");
}

inline void check_arguments(const Touch& operation) {
  const auto [batch, resolved] = operation.arguments;
  const std::int64_t depth = operation.window.size.depth;
  const std::int64_t ahead = std::int64_t{batch} - resolved;
  SATRAP_CHECK(ahead > 0 && ahead <= depth, "batch ", batch, " cannot be touched when batch ",
               resolved, " has been resolved, in a window of ", depth, " batches");
}

inline void check_arguments(const ListSlots& operation) {
  const std::int64_t first = operation.first_set, num_sets = operation.num_sets;
  const std::int64_t all = operation.cache.size.num_sets;
  SATRAP_CHECK(first >= 0 && first + num_sets <= all, "sets ", first, " + ", num_sets, " of ", all);
}

inline void check_arguments(const AddInOrder& operation) {
  const auto count = std::ssize(operation.vectors);
  SATRAP_CHECK(count > 0 && count <= kMaxAdded, count, " vectors to add, of at most ", kMaxAdded);
}

}  // namespace satrap::backend
