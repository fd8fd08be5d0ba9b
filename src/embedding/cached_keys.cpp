#include "src/embedding/cached_keys.h"

#include "satrap/core/error.h"

namespace satrap::embedding {

void CachedKeys::request(std::int64_t step,
                         std::span<const std::vector<Key>> keys,
                         std::int64_t num_examples) {
  SATRAP_CHECK(keys.size() == rows_.parts.size(), keys.size(), " lists of keys for ",
               rows_.parts.size(), " row groups");
  rows_.begin();
  cached_.fill(rows_.parts, keys, num_examples, step);
  rows_.make_plan(step);
  rows_.request(step);
}

void CachedKeys::queue_gather(std::span<float* const> weights) const {
  cached_.device.use_on_this_thread();
  const backend::StreamTimes::Span span(cached_.times, backend::StreamTimes::kLookup);
  for (std::size_t g = 0; g < rows_.parts.size(); ++g) {
    const GroupPart& part = *rows_.parts[g];
    cached_.device.pool_forward(cached_.caches[g]->view(), part.batch.bags(), part.view(),
                                FloatType::kFp32, weights[g], cached_.compute);
  }
}

void CachedKeys::gather(std::span<float* const> weights) const {
  weights_.assign(weights.begin(), weights.end());
  if (!cached_.device.is_host()) {
    for (std::size_t g = 0; g < rows_.parts.size(); ++g) {
      weights_[g] = cached_.vectors[g].resize(num_values(*rows_.parts[g]));
    }
  }
  queue_gather(weights_);
  for (std::size_t g = 0; g < rows_.parts.size(); ++g) {
    if (weights_[g] == weights[g]) continue;
    const auto bytes = static_cast<std::int64_t>(num_values(*rows_.parts[g]) * sizeof(float));
    cached_.device.copy(weights[g], weights_[g], bytes, cached_.compute);
  }
  cached_.compute.wait_until_idle();
}

void CachedKeys::update(std::span<const float* const> gradients, std::int64_t step) {
  if (cached_.device.is_host()) return rows_.update(gradients, step, nullptr);
  cached_.device.use_on_this_thread();
  gradients_.clear();
  for (std::size_t g = 0; g < rows_.parts.size(); ++g) {
    gradients_.push_back(cached_.vectors[g].upload(
        std::span(gradients[g], num_values(*rows_.parts[g])), cached_.compute));
  }
  rows_.update(gradients_, step, nullptr);
}

/// Of its keys' vectors, [n, padded_dim].
std::size_t CachedKeys::num_values(const GroupPart& part) const {
  return static_cast<std::size_t>(part.batch.num_ids() * part.group.layout.padded_dim);
}

}  // namespace satrap::embedding
