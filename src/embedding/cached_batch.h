#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "satrap/embedding/row_access.h"
#include "src/embedding/cached_parts.h"
#include "src/embedding/row_cache.h"

namespace satrap::embedding {

/// The batch of a step in the caches of a job's rows, or of an evaluation past them.
class CachedBatch final : public BatchRows {
 public:
  explicit CachedBatch(RowCache& cached);
  ~CachedBatch() override;

  void make_plan(Planner& planner, const data::Batch& batch, std::int64_t step) override;
  void request(std::int64_t step, std::int64_t least_version) override;
  std::optional<std::int64_t> wait() override;
  void read(Planner& planner, const data::Batch& batch) override;
  void pool(const data::Batch& batch,
            const FloatMatrix& pooled,
            const FloatMatrix& mask) const override;
  void wait_taken() override {}

 protected:
  std::int64_t num_examples() const override { return num_examples_; }
  void apply(const float* gradient, std::int64_t step) override;
  void skip(std::int64_t step) override { cached_.note_applied(step); }
  void queue_update(const ConstFloatMatrix& gradient,
                    std::int64_t step,
                    const float* flag) override;

 private:
  void queue_pool(float* out) const;

  RowCache& cached_;
  CachedParts rows_;
  std::int64_t num_examples_ = 0;
  std::size_t num_ids_ = 0;
  bool is_read_ = false;                 // else planned
  std::unique_ptr<BatchRows> reader_;    // past the caches
  std::vector<const float*> gradients_;  // [num_groups], the same matrix
};

}  // namespace satrap::embedding
