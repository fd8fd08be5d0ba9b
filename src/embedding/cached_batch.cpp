#include "src/embedding/cached_batch.h"

#include "satrap/core/error.h"
#include "src/embedding/check_batch.h"
#include "src/embedding/pool_rows.h"

namespace satrap::embedding {

CachedBatch::CachedBatch(RowCache& cached)
    : BatchRows(cached.on_host), cached_(cached), rows_(cached) {}

CachedBatch::~CachedBatch() = default;

void CachedBatch::make_plan(Planner&, const data::Batch& batch, std::int64_t step) {
  check_batch(batch, cached_.on_device, cached_.on_device.output_width);
  is_read_ = false;
  num_examples_ = batch.num_examples;
  num_ids_ = batch.ids.size();
  rows_.begin();
  cached_.fill(rows_.parts, batch, step);
  rows_.make_plan(step);
}

void CachedBatch::request(std::int64_t step, std::int64_t) { rows_.request(step); }

std::optional<std::int64_t> CachedBatch::wait() {
  rows_.wait();
  return std::nullopt;
}

void CachedBatch::read(Planner& planner, const data::Batch& batch) {
  cached_.flush();
  if (!reader_) reader_ = cached_.uncached.make_rows();
  reader_->read(planner, batch);
  is_read_ = true;
}

void CachedBatch::pool(const data::Batch& batch,
                       const FloatMatrix& pooled,
                       const FloatMatrix& mask) const {
  if (is_read_) return reader_->pool(batch, pooled, mask);
  SATRAP_CHECK(batch.num_examples == num_examples_ && batch.ids.size() == num_ids_,
               "pooling of a batch of ", batch.num_examples, " examples with the plan of another");
  float* const mask_out = host_values(mask, num_examples_, layout_.mask_width, "mask");
  write_mask(layout_, batch, mask_out, mask.stride);
  cached_.device.use_on_this_thread();
  if (pooled.place == Place::kDevice) {
    cached_.check_on_device(pooled, num_examples_);
    return queue_pool(static_cast<float*>(pooled.data));
  }
  float* const out = host_values(pooled, num_examples_, layout_.output_width, "pooled output");
  queue_pool(cached_.columns.to_write(out, pooled.stride, num_examples_));
  cached_.columns.finish(out, pooled.stride, num_examples_, cached_.compute);
}

void CachedBatch::queue_pool(float* out) const {
  const backend::StreamTimes::Span span(cached_.times, backend::StreamTimes::kLookup);
  for (std::size_t g = 0; g < rows_.parts.size(); ++g) {
    cached_.device.pool_forward(cached_.caches[g]->view(), rows_.parts[g]->batch.bags(),
                                rows_.parts[g]->view(), FloatType::kFp32, out, cached_.compute);
  }
}

void CachedBatch::apply(const float* gradient, std::int64_t step) {
  cached_.device.use_on_this_thread();
  gradients_.assign(rows_.parts.size(),
                    cached_.columns.to_read(gradient, num_examples_, cached_.compute));
  rows_.update(gradients_, step, nullptr);
  cached_.compute.wait_until_idle();  // the gradient is the caller's again
}

void CachedBatch::queue_update(const ConstFloatMatrix& gradient,
                               std::int64_t step,
                               const float* flag) {
  cached_.check_on_device(gradient, num_examples_);
  gradients_.assign(rows_.parts.size(), static_cast<const float*>(gradient.data));
  rows_.update(gradients_, step, flag);
}

}  // namespace satrap::embedding
