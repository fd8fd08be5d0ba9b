#include "satrap/pipeline/scorer.h"

#include <algorithm>

namespace satrap::pipeline {

std::span<const float> join_numeric(const data::Batch& batch,
                                    std::span<const float> mask,
                                    std::vector<float>& joined) {
  if (mask.empty()) return batch.numeric;
  const auto rows = static_cast<std::size_t>(batch.num_examples);
  const auto numbers = static_cast<std::size_t>(batch.num_numeric);
  const std::size_t masks = mask.size() / rows;
  joined.resize(rows * (numbers + masks));
  for (std::size_t r = 0; r < rows; ++r) {
    auto out = joined.begin() + static_cast<std::ptrdiff_t>(r * (numbers + masks));
    out = std::copy_n(batch.numeric.data() + r * numbers, numbers, out);
    std::copy_n(mask.data() + r * masks, masks, out);
  }
  return joined;
}

std::span<const float> Scorer::score(const data::Batch& batch) {
  reader_.look_up(batch, pooled_, mask_);
  probabilities_.resize(static_cast<std::size_t>(batch.num_examples * batch.num_labels));
  model_.network->predict({.num_examples = batch.num_examples,
                           .numeric = join_numeric(batch, mask_, joined_),
                           .pooled = pooled_,
                           .labels = {},
                           .step = 0},
                          probabilities_);
  return probabilities_;
}

}  // namespace satrap::pipeline
