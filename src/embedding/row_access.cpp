#include "satrap/embedding/row_access.h"

#include "satrap/core/error.h"
#include "satrap/table/row.h"
#include "src/embedding/index.h"
#include "src/embedding/pool_rows.h"

namespace satrap::embedding {

void PlannedRows::pool(const data::Batch& batch,
                       const FloatMatrix& pooled,
                       const FloatMatrix& mask) const {
  SATRAP_CHECK(
      batch.num_examples == plan_.num_examples && batch.ids.size() == plan_.unique_of.size(),
      "pooling of a batch of ", batch.num_examples, " examples with the plan of another");
  const PooledOutput out{
      host_values(pooled, plan_.num_examples, layout_.output_width, "pooled output"), pooled.stride,
      host_values(mask, plan_.num_examples, layout_.mask_width, "mask"), mask.stride};
  const Addresses from = addresses();
  SATRAP_CHECK(from.rows.size() == plan_.keys.size(), from.rows.size(), " rows for ",
               plan_.num_unique(), " keys");
  pool_rows(layout_, plan_, batch, from.rows.data(), from.weights_offset, out, pool_);
}

void BatchRows::update(const ConstFloatMatrix& grad_pooled, std::int64_t step, SkipFlag skip) {
  SATRAP_CHECK(step >= 1 && step <= kMaxStep, "step ", step);
  if (grad_pooled.place == Place::kDevice) {
    SATRAP_CHECK(skip.value == nullptr || skip.place == Place::kDevice, "the flag of step ", step,
                 " is not in the device");
    return queue_update(grad_pooled, step, skip.value);
  }
  SATRAP_CHECK(skip.place != Place::kDevice, "the flag of step ", step, " is in a device");
  if (skip.value != nullptr && *skip.value != 0.0F) return this->skip(step);
  const float* gradient =
      host_values(grad_pooled, num_examples(), layout_.output_width, "gradient of the pooled rows");
  // Offsets of vectors, counted from the start, assume this stride.
  SATRAP_CHECK(num_examples() <= 1 || grad_pooled.stride == layout_.output_width,
               "gradient of the pooled rows: stride ", grad_pooled.stride, " for ",
               layout_.output_width, " columns");
  apply(gradient, step);
}

void BatchRows::read(Planner&, const data::Batch&) {
  SATRAP_CHECK(false, "rows in a cache are read for evaluation, not those behind it");
}

void BatchRows::queue_update(const ConstFloatMatrix&, std::int64_t step, const float*) {
  SATRAP_CHECK(false, "the gradient of step ", step, " is in a device, its rows are not");
}

}  // namespace satrap::embedding
