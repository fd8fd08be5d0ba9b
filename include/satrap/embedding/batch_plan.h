#pragma once

#include <cstdint>
#include <vector>

#include "satrap/core/ids.h"

namespace satrap::embedding {

/// A batch's use of the embedding tables, computed once, ahead of the step: its unique keys and
/// where each occurs. BatchRows, not the plan, knows where the rows are. Reused from step to step
/// without allocating.
///
/// Id i is the i-th id of the batch (feature-major, in the order of the data); those beyond a
/// sequence's max_length are omitted. Unique keys ascend, so they are grouped by table, and within
/// a table by partition. Occurrence j is the j-th id in the order of (key, position): the
/// occurrences of unique key u are [segments[u], segments[u + 1]); their gradients are added in the
/// order of kernels/sum_order.h.
struct BatchPlan {
  /// Unique keys [begin, end) of one partition of one table: the unit of exclusive access to rows.
  struct Range {
    TableId table;
    std::int64_t partition;
    std::int64_t begin, end;
  };

  std::int64_t num_examples = 0;  // of the batch

  // Per id, in the order of the batch: what the forward pass reads.
  std::vector<std::int32_t> unique_of;  // [num_ids] number of its key; -1: omitted
  std::vector<float> coefficient;       // [num_ids] its weight in the pooled output

  // Per unique key.
  std::vector<Key> keys;               // [num_unique] ascending
  std::vector<std::int64_t> segments;  // [num_unique + 1] into the occurrences

  // Per occurrence, in the order of keys: what the backward pass reads.
  std::vector<std::int32_t> occurrences;      // [num_occurrences] number of the id
  std::vector<std::uint32_t> output_offset;   // [num_occurrences] where its vector is in the pooled
                                              // output, in floats from the start
  std::vector<float> occurrence_coefficient;  // [num_occurrences] as coefficient

  std::vector<Range> ranges;               // in key order
  std::vector<std::int64_t> update_units;  // [num_units + 1] into ranges: consecutive ranges of
                                           // about the same work, for the threads to share

  std::int64_t num_unique() const { return static_cast<std::int64_t>(keys.size()); }
  std::int64_t num_occurrences() const { return static_cast<std::int64_t>(occurrences.size()); }
};

}  // namespace satrap::embedding
