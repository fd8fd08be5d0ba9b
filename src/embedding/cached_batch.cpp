// The batch of a step in the caches of a job's rows.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/embedding/cached_rows.h"
#include "src/embedding/cached_parts.h"
#include "src/embedding/check_batch.h"
#include "src/embedding/row_cache.h"

namespace satrap::embedding {

class CachedRows::Batch final : public BatchRows {
 public:
  explicit Batch(RowCache& cached) : BatchRows(cached.on_host), cached_(cached), rows_(cached) {}

  void make_plan(Planner& planner, const data::Batch& batch, std::int64_t step) override;
  void request(std::int64_t step, std::int64_t) override { rows_.request(step); }
  std::optional<std::int64_t> wait() override {
    rows_.wait();
    return std::nullopt;
  }
  void pool(const data::Batch& batch,
            const FloatMatrix& pooled,
            const FloatMatrix& mask) const override;

 protected:
  std::int64_t num_examples() const override { return num_examples_; }
  void apply(const float* gradient, std::int64_t step) override;
  void skip(std::int64_t step) override { cached_.note_applied(step); }
  void queue_update(const ConstFloatMatrix& gradient,
                    std::int64_t step,
                    const float* flag) override;

 private:
  RowCache& cached_;
  CachedParts rows_;
  std::int64_t num_examples_ = 0;
  std::size_t num_ids_ = 0;
  std::vector<const float*> gradients_;  // [num_groups], the same matrix
  mutable std::vector<float*> pooled_;   // the same of pool()
};

void CachedRows::Batch::make_plan(Planner&, const data::Batch& batch, std::int64_t step) {
  check_batch(batch, cached_.on_device, cached_.on_device.output_width);
  num_examples_ = batch.num_examples;
  num_ids_ = batch.ids.size();
  rows_.begin();
  cached_.fill(rows_.parts, batch, step);
  rows_.make_plan(step);
}

void CachedRows::Batch::pool(const data::Batch& batch,
                             const FloatMatrix& pooled,
                             const FloatMatrix& mask) const {
  SATRAP_CHECK(batch.num_examples == num_examples_ && batch.ids.size() == num_ids_,
               "pooling of a batch of ", batch.num_examples, " examples with the plan of another");
  cached_.pool_to(batch, pooled, mask, [&](float* out) {
    pooled_.assign(rows_.parts.size(), out);
    rows_.pool(pooled_);
  });
}

void CachedRows::Batch::apply(const float* gradient, std::int64_t step) {
  cached_.device.use_on_this_thread();
  gradients_.assign(rows_.parts.size(),
                    cached_.columns.to_read(gradient, num_examples_, cached_.compute));
  rows_.update(gradients_, step, nullptr);
  cached_.compute.wait_until_idle();  // the gradient is the caller's again
}

void CachedRows::Batch::queue_update(const ConstFloatMatrix& gradient,
                                     std::int64_t step,
                                     const float* flag) {
  cached_.check_on_device(gradient, num_examples_);
  gradients_.assign(rows_.parts.size(), static_cast<const float*>(gradient.data));
  rows_.update(gradients_, step, flag);
}

std::unique_ptr<BatchRows> CachedRows::make_rows() { return std::make_unique<Batch>(*cache_); }

}  // namespace satrap::embedding
