#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/embedding/device_array.h"
#include "src/embedding/numbered_keys.h"
#include "src/embedding/row_cache.h"

namespace satrap::embedding {

/// The rows of all caches that one step needs, from their plan to their arrival. Reused from step
/// to step.
class CachedParts {
 public:
  explicit CachedParts(RowCache& cached)
      : parts(cached.make_parts()),
        cached_(cached),
        steps_(cached.device),
        arrived_(cached.device) {}
  ~CachedParts() { cached_.fetcher.forget(step_); }
  CachedParts(const CachedParts&) = delete;
  CachedParts& operator=(const CachedParts&) = delete;

  // Planner thread.
  void begin();                       // before they are filled: no queued work uses them any more
  void make_plan(std::int64_t step);  // of the parts, which have been filled
  void request(std::int64_t step);    // gives the rows slots, and asks for the missing ones

  /// Queues the pooling of each part's rows into out[g].
  void pool(std::span<float* const> out) const;

  /// Queues the update by `gradients`, of the output of each part, unless *flag is not 0.
  void update(std::span<const float* const> gradients, std::int64_t step, const float* flag);

  /// Blocks until the store has given the rows of this and all earlier steps. What is queued on
  /// `compute` from then on comes after their arrival.
  void wait();

  void check_step(std::int64_t step) const;  // of its plan

  RowCache::Parts parts;  // of the groups that features read

 private:
  void ask_for_missing();
  void queue_arrival();
  void queue_load();

  RowCache& cached_;
  std::int64_t step_ = 0;
  bool is_queued_ = false;  // its update
  QueuedArray<TableStep> steps_;
  std::vector<TableStep> table_steps_;  // [num_tables]

  backend::Event arrived_;          // of the rows in their slots
  NumberedKeys missing_;            // of all groups
  std::vector<std::byte*> places_;  // by the numbers of missing_
  // The rows to be fetched, ascending.
  std::vector<Key> keys_;
  std::vector<std::byte*> rows_;
  std::vector<std::size_t> numbers_;  // of their places
  std::vector<bool> found_;
};

}  // namespace satrap::embedding
