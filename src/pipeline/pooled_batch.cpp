#include "satrap/pipeline/pooled_batch.h"

#include <algorithm>

#include "satrap/core/error.h"

namespace satrap::pipeline {

void PooledBatch::begin(const data::Batch& batch,
                        const embedding::FeatureLayout& layout,
                        const embedding::DeviceRows* device) {
  batch_ = &batch;
  layout_ = device == nullptr ? nullptr : &layout;
  host_width_ = layout.output_width;
  device_ = device;
  mask_width_ = layout.mask_width;
  if (device_ == nullptr) {
    pooled_.resize(batch.num_examples, layout.output_width);
  } else {
    on_device_.resize(device_->device, batch.num_examples, device_->layout.output_width);
  }
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

std::vector<float> PooledBatch::pooled_values() const {
  if (device_ == nullptr) return pooled_.values();
  const embedding::FeatureLayout& host = *layout_;
  const std::int64_t n = batch_->num_examples;
  std::vector<float> wide(static_cast<std::size_t>(n * device_->layout.output_width));
  std::vector<float> values(static_cast<std::size_t>(n * host.output_width));
  device_->device.use_on_this_thread();
  device_->device.copy(wide.data(), on_device_.data(), on_device_.bytes(), device_->stream);
  device_->stream.wait_until_idle();
  embedding::copy_columns(device_->layout, wide.data(), device_->layout.output_width, host,
                          values.data(), host.output_width, n, device_->pool);
  return values;
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
  SATRAP_CHECK(std::ssize(pooled) == batch_->num_examples * host_width_ &&
                   std::ssize(mask) == numeric_.rows() * mask_width_,
               "a lookup of ", pooled.size(), " and ", mask.size(), " values is restored to ",
               batch_->num_examples * host_width_, " and ", numeric_.rows() * mask_width_);
  if (device_ == nullptr) {
    std::ranges::copy(pooled, pooled_.values().begin());
  } else {
    const std::int64_t width = device_->layout.output_width;
    std::vector<float> wide(static_cast<std::size_t>(batch_->num_examples * width));
    embedding::copy_columns(*layout_, pooled.data(), host_width_, device_->layout, wide.data(),
                            width, batch_->num_examples, device_->pool);
    device_->device.use_on_this_thread();
    device_->device.copy(on_device_.data(), wide.data(), on_device_.bytes(), device_->stream);
    device_->stream.wait_until_idle();
  }
  const std::int64_t width = numeric_.cols();
  for (std::int64_t e = 0; e < numeric_.rows(); ++e) {
    std::copy_n(mask.begin() + e * mask_width_, mask_width_,
                numeric_.values().begin() + (e + 1) * width - mask_width_);
  }
}

}  // namespace satrap::pipeline
