#include <algorithm>
#include <cmath>

#include "src/backend/arguments.h"
#include "src/backend/host_device.h"
#include "src/backend/host_sets.h"

namespace satrap::backend {
namespace {

/// The factor of a bag's ids; weights are summed in the order of the bag.
float scale_of(Pooling pooling, const float* weights, std::int64_t begin, std::int64_t end) {
  if (pooling != Pooling::kMean && pooling != Pooling::kSqrtN) return 1.0F;
  float sum = weights == nullptr ? static_cast<float>(end - begin) : 0.0F;
  for (std::int64_t i = begin; weights != nullptr && i < end; ++i) {
    sum += pooling == Pooling::kMean ? weights[i] : weights[i] * weights[i];
  }
  const float divisor = pooling == Pooling::kMean ? sum : std::sqrt(sum);
  return divisor == 0.0F ? 0.0F : 1.0F / divisor;
}

/// Per id: its tag, its vector in the output, its factor there.
void describe_ids(const Bags& bags, std::int64_t padded_dim, const PlanView& plan) {
  for (std::int64_t b = 0; b < bags.num_features * bags.num_examples; ++b) {
    const BagFeature& feature = bags.features[b / bags.num_examples];
    const std::int64_t begin = bags.offsets[b], end = bags.offsets[b + 1];
    const float scale = scale_of(feature.pooling, bags.weights, begin, end);
    const bool sequence = feature.pooling == Pooling::kSequence;
    const std::int64_t target = (b % bags.num_examples * bags.row_stride + feature.column) / 4;
    for (std::int64_t i = begin; i < end; ++i) {
      const bool used = !sequence || i - begin < feature.vectors_per_row;
      const std::int64_t vector = sequence ? (i - begin) * (padded_dim / 4) : 0;
      const float factor = bags.weights == nullptr ? scale : bags.weights[i] * scale;
      plan.id_tags[i] = used ? tag_of(bags.keys[i]) : kUnusedTag;
      plan.coefficients[i] = used ? factor : 0.0F;
      plan.id_places[i] = {used ? static_cast<std::uint32_t>(target + vector) : kNoTarget,
                           plan.coefficients[i]};
    }
  }
}

/// Numbers the keys, in the order of tags, and their sets.
void number_keys(const PlanView& plan, std::int64_t num_sets) {
  PlanCounts& counts = *plan.counts;
  for (std::int64_t j = 0; j < plan.num_ids; ++j) {
    const std::uint32_t position = plan.positions[j];
    const std::uint64_t tag = plan.id_tags[position];
    plan.sorted_tags[j] = tag;
    if (tag == kUnusedTag) {
      plan.unique_of[position] = -1;
      continue;
    }
    plan.occurrence_targets[j] = plan.id_places[position].target;
    plan.occurrence_coefficients[j] = plan.id_places[position].coefficient;
    const bool first = j == 0;
    if (first || tag != plan.sorted_tags[j - 1]) {
      if (first || host_set_of(tag, num_sets) != host_set_of(plan.sorted_tags[j - 1], num_sets)) {
        plan.set_runs[counts.set_runs++] = counts.unique;
      }
      plan.unique_tags[counts.unique] = tag;
      plan.segments[counts.unique++] = static_cast<std::uint32_t>(j);
    }
    plan.unique_of[position] = static_cast<std::int32_t>(counts.unique - 1);
    counts.occurrences = static_cast<std::uint32_t>(j + 1);
  }
  plan.segments[counts.unique] = counts.occurrences;
  plan.set_runs[counts.set_runs] = counts.unique;
}

void list_long_segments(const PlanView& plan) {
  PlanCounts& counts = *plan.counts;
  for (std::uint32_t u = 0; u < counts.unique; ++u) {
    const std::int64_t length = plan.segments[u + 1] - plan.segments[u];
    if (length <= kSumChunk) continue;
    const std::int64_t chunks = (length + kSumChunk - 1) / kSumChunk;
    plan.long_unique[counts.longs] = u;
    plan.long_chunks[counts.longs] = counts.chunks;
    plan.long_groups[counts.longs++] = counts.groups;
    counts.chunks += static_cast<std::uint32_t>(chunks);
    if (chunks > kSumChunk) {
      counts.groups += static_cast<std::uint32_t>((chunks + kSumChunk - 1) / kSumChunk);
    }
  }
  plan.long_chunks[counts.longs] = counts.chunks;
  plan.long_groups[counts.longs] = counts.groups;
}

}  // namespace

/// plan.positions: the ids by tag; equal ones in the order of the batch.
void HostDevice::sort_ids(const PlanView& plan) {
  items_.resize(static_cast<std::size_t>(plan.num_ids));
  other_items_.resize(items_.size());
  for (std::size_t i = 0; i < items_.size(); ++i) {
    items_[i] = {static_cast<Key>(plan.id_tags[i]), static_cast<std::uint32_t>(i), 0};
  }
  sort_by_key(items_, other_items_);
  for (std::size_t i = 0; i < items_.size(); ++i) plan.positions[i] = items_[i].position;
}

void HostDevice::build_plan(const BuildPlan& operation, StreamRef) {
  check_arguments(operation);
  const PlanView& plan = operation.plan;
  *plan.counts = {};
  if (plan.num_ids == 0) return;
  describe_ids(operation.bags, operation.padded_dim, plan);
  sort_ids(plan);
  number_keys(plan, operation.num_sets);
  list_long_segments(plan);
}

}  // namespace satrap::backend
