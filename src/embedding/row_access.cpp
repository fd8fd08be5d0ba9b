#include "satrap/embedding/row_access.h"

#include "satrap/core/error.h"
#include "satrap/table/row.h"
#include "src/embedding/index.h"
#include "src/embedding/pool_rows.h"

namespace satrap::embedding {

void BatchRows::pool(const data::Batch& batch,
                     std::span<float> pooled,
                     std::span<float> mask) const {
  SATRAP_CHECK(
      batch.num_examples == plan_.num_examples && batch.ids.size() == plan_.unique_of.size(),
      "pooling of a batch of ", batch.num_examples, " rows with the plan of another");
  SATRAP_CHECK(pooled.size() == index(plan_.num_examples * layout_.output_width),
               "pooled output of ", pooled.size(), " floats for ", plan_.num_examples, " rows of ",
               layout_.output_width);
  SATRAP_CHECK(mask.size() == index(plan_.num_examples * layout_.mask_width), "mask of ",
               mask.size(), " floats for ", plan_.num_examples, " rows of ", layout_.mask_width);
  const Addresses from = addresses();
  SATRAP_CHECK(from.rows.size() == plan_.keys.size(), from.rows.size(), " rows for ",
               plan_.num_unique(), " keys");
  pool_rows(layout_, plan_, batch, from.rows.data(), from.weights_offset, pooled.data(),
            mask.data(), pool_);
}

void BatchRows::update(std::span<const float> grad_pooled, std::int64_t step) {
  SATRAP_CHECK(grad_pooled.size() == index(plan_.num_examples * layout_.output_width),
               "gradient of ", grad_pooled.size(), " floats for ", plan_.num_examples, " rows of ",
               layout_.output_width);
  SATRAP_CHECK(step >= 1 && step <= kMaxStep, "step ", step);
  apply(grad_pooled.data(), step);
}

}  // namespace satrap::embedding
