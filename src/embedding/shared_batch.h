#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "satrap/embedding/shared_cache.h"
#include "src/embedding/device_array.h"
#include "src/embedding/shared_cache_impl.h"

namespace satrap::embedding {

/// The SharedBatch of a SharedCache.
class CopiedBatch final : public SharedBatch {
 public:
  explicit CopiedBatch(SharedCache::Impl& cache);

  void make_plan(const data::Batch& batch, std::int64_t step) override;
  void resolve() override;
  std::span<const Key> keys() const override { return keys_; }
  std::span<const std::int64_t> versions() const override { return versions_; }
  std::int64_t take(std::span<const float* const> weights,
                    std::span<const std::int64_t> versions) override;
  void pool(const data::Batch& batch,
            const FloatMatrix& pooled,
            const FloatMatrix& mask) const override;
  void sum_gradients(const float* grad_pooled, std::span<float* const> gradients) override;
  std::int64_t num_examples() const override { return num_examples_; }

 private:
  /// A key's place: group, number among the distinct keys of its part, slot.
  struct Place {
    Key key;
    std::uint32_t group, unique;
    std::int32_t slot;
  };
  void list_keys();
  void scatter(std::span<const float* const> weights);
  std::int64_t check_versions() const;

  SharedCache::Impl& cache_;
  SharedCache::Impl::Parts parts_;
  std::int64_t step_ = 0, num_examples_ = 0;
  std::size_t num_ids_ = 0;

  std::vector<Place> places_;           // [num_keys] by key
  std::vector<Key> keys_;               // [num_keys]
  std::vector<std::int64_t> versions_;  // [num_keys]

  // What was last read of the device's lists, and is sent there; kept from batch to batch.
  std::vector<std::uint64_t> tags_;
  std::vector<std::int32_t> slots_;
  std::vector<std::size_t> sent_;  // numbers of keys of one group
};

}  // namespace satrap::embedding
