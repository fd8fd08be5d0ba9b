#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "satrap/embedding/cached_rows.h"
#include "src/embedding/row_cache.h"

namespace satrap::embedding {

/// The BatchByKey of a CachedRows: its groups, its planner's stream and the stream of its lookups.
class KeyedBatch final : public BatchByKey {
 public:
  explicit KeyedBatch(RowCache& cached)
      : cached_(cached), parts_(cached.make_parts()), keys_(parts_.size()) {}

  void make_plan(const data::Batch& batch) override;
  std::span<const std::vector<Key>> keys() const override { return keys_; }
  void set_places(std::span<const std::vector<std::int32_t>> places) override;
  void pool(const data::Batch& batch,
            std::span<const float* const> weights,
            const FloatMatrix& pooled,
            const FloatMatrix& mask) const override;
  void sum_gradients(const ConstFloatMatrix& grad_pooled,
                     std::span<float* const> gradients) const override;

 private:
  void list_keys();

  RowCache& cached_;
  const GroupCaches::Parts parts_;
  std::int64_t num_examples_ = 0;
  std::vector<std::vector<Key>> keys_;  // [num_groups]
  std::vector<std::uint64_t> tags_;     // what was last read of the device
};

}  // namespace satrap::embedding
