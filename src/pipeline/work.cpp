#include "satrap/pipeline/work.h"

namespace satrap::pipeline {

void Work::begin_outputs(const embedding::DeviceRows* device_of_rows) {
  device = device_of_rows;
  const ConstFloatMatrix pooled = inputs.pooled();
  if (device == nullptr) return grad_pooled.resize(pooled.rows, pooled.cols);
  grad_on_device.resize(device->device, pooled.rows, pooled.cols);
  nonfinite_on_device.resize(device->device, 1, 1);
}

embedding::SkipFlag Work::skip() const {
  if (device == nullptr) return {&nonfinite, Place::kHost};
  return {nonfinite_on_device.data(), Place::kDevice};
}

}  // namespace satrap::pipeline
