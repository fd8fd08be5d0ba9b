#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/backend/random_batch.h"

namespace satrap::testing {

/// A simple host version of the plan: build_plan must give the same.
struct HostPlan {
  struct Occurrence {
    std::int64_t id;
    std::int64_t target;  // element of the output where its vector begins
    float coefficient;
  };
  std::vector<std::uint64_t> tags;                   // distinct, ascending
  std::vector<std::vector<Occurrence>> occurrences;  // per tag, in the order of the batch
  std::vector<std::int64_t> unique_of;               // per id; -1: not used
  std::vector<float> coefficients;                   // per id
};

inline HostPlan make_host_plan(const HostBatch& batch) {
  HostPlan plan;
  plan.unique_of.assign(batch.keys.size(), -1);
  plan.coefficients.assign(batch.keys.size(), 0.0F);
  std::map<std::uint64_t, std::vector<HostPlan::Occurrence>> found;
  const auto features = batch.features();
  for (std::size_t f = 0; f < features.size(); ++f) {
    for (std::int64_t row = 0; row < batch.num_examples; ++row) {
      const auto bag =
          f * static_cast<std::size_t>(batch.num_examples) + static_cast<std::size_t>(row);
      const std::int64_t begin = batch.offsets[bag], end = batch.offsets[bag + 1];
      const Pooling pooling = features[f].pooling;
      float sum = 0.0F;
      for (std::int64_t i = begin; i < end; ++i) {
        const float w = batch.weights.empty() ? 1.0F : batch.weights[static_cast<std::size_t>(i)];
        sum += pooling == Pooling::kSqrtN ? w * w : w;
      }
      const float divisor = pooling == Pooling::kSqrtN ? std::sqrt(sum) : sum;
      const bool scaled = pooling == Pooling::kMean || pooling == Pooling::kSqrtN;
      const float scale = !scaled ? 1.0F : divisor == 0.0F ? 0.0F : 1.0F / divisor;
      for (std::int64_t i = begin; i < end; ++i) {
        const auto id = static_cast<std::size_t>(i);
        const std::int64_t element = pooling == Pooling::kSequence ? i - begin : 0;
        if (pooling == Pooling::kSequence && element >= features[f].vectors_per_row) continue;
        const float w = batch.weights.empty() ? 1.0F : batch.weights[id];
        plan.coefficients[id] = w * scale;
        found[backend::tag_of(batch.keys[id])].push_back(
            {i, row * batch.row_stride() + features[f].column + element * batch.padded_dim(),
             w * scale});
      }
    }
  }
  for (auto& [tag, occurrences] : found) {
    std::sort(occurrences.begin(), occurrences.end(),
              [](const auto& x, const auto& y) { return x.id < y.id; });
    for (const auto& occurrence : occurrences) {
      plan.unique_of[static_cast<std::size_t>(occurrence.id)] =
          static_cast<std::int64_t>(plan.tags.size());
    }
    plan.tags.push_back(tag);
    plan.occurrences.push_back(occurrences);
  }
  return plan;
}

}  // namespace satrap::testing
