#include "satrap/pipeline/pooled_batch.h"

#include <algorithm>

#include "satrap/core/error.h"

namespace satrap::pipeline {

void PooledBatch::begin(const data::Batch& batch, const embedding::FeatureLayout& layout) {
  batch_ = &batch;
  mask_width_ = layout.mask_width;
  pooled_.resize(batch.num_examples, layout.output_width);
  const std::int64_t width = batch.num_numeric + mask_width_;
  numeric_.resize(mask_width_ > 0 ? batch.num_examples : 0, width);
  for (std::int64_t e = 0; e < numeric_.rows(); ++e) {
    std::copy_n(batch.numeric.data() + e * batch.num_numeric, batch.num_numeric,
                numeric_.values().data() + e * width);
  }
}

FloatMatrix PooledBatch::mask() {
  if (mask_width_ == 0) return {};
  return numeric_.columns(batch_->num_numeric, mask_width_);
}

ConstFloatMatrix PooledBatch::numeric() const {
  if (mask_width_ > 0) return numeric_.view();
  return host_matrix(std::span(batch_->numeric), batch_->num_examples, batch_->num_numeric);
}

std::vector<float> PooledBatch::mask_values() const {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(numeric_.rows() * mask_width_));
  const std::int64_t width = numeric_.cols();
  for (std::int64_t e = 0; e < numeric_.rows(); ++e) {
    const auto end = numeric_.values().begin() + (e + 1) * width;
    values.insert(values.end(), end - mask_width_, end);
  }
  return values;
}

void PooledBatch::restore(const std::vector<float>& pooled, const std::vector<float>& mask) {
  SATRAP_CHECK(
      pooled.size() == pooled_.values().size() && std::ssize(mask) == numeric_.rows() * mask_width_,
      "a lookup of ", pooled.size(), " and ", mask.size(), " values is restored to ",
      pooled_.values().size(), " and ", numeric_.rows() * mask_width_);
  std::ranges::copy(pooled, pooled_.values().begin());
  const std::int64_t width = numeric_.cols();
  for (std::int64_t e = 0; e < numeric_.rows(); ++e) {
    std::copy_n(mask.begin() + e * mask_width_, mask_width_,
                numeric_.values().begin() + (e + 1) * width - mask_width_);
  }
}

}  // namespace satrap::pipeline
