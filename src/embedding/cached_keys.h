#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "satrap/embedding/cached_rows.h"
#include "src/embedding/cached_parts.h"
#include "src/embedding/row_cache.h"

namespace satrap::embedding {

/// The keys of a step in the caches of a job's rows.
class CachedKeys final : public RowsByKey {
 public:
  explicit CachedKeys(RowCache& cached) : cached_(cached), rows_(cached) {}

  void request(std::int64_t step,
               std::span<const std::vector<Key>> keys,
               std::int64_t num_examples) override;
  void begin() override { rows_.begin(); }
  void wait() override { rows_.wait(); }
  void gather(std::span<float* const> weights) const override;
  void update(std::span<const float* const> gradients, std::int64_t step) override;
  void skip(std::int64_t step) override { cached_.note_applied(step); }
  void queue_gather(std::span<float* const> weights) const override;
  void queue_update(std::span<const float* const> gradients,
                    std::int64_t step,
                    const float* flag) override {
    rows_.update(gradients, step, flag);
  }

 private:
  std::size_t num_values(const GroupPart& part) const;

  RowCache& cached_;
  CachedParts rows_;
  // [num_groups] in the memory of a device.
  std::vector<const float*> gradients_;
  mutable std::vector<float*> weights_;
};

}  // namespace satrap::embedding
