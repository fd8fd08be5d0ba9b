#pragma once

#include <cstdint>

#include "satrap/backend/memory.h"
#include "satrap/core/float_matrix.h"

namespace satrap::backend {

/// Owns an fp32 matrix in a device's memory, without padding between rows. Reused from step to
/// step: does not allocate once it has had its largest shape.
class DeviceMatrix {
 public:
  /// The values are undefined afterwards; what is queued may still use the old ones. The device
  /// outlives it.
  void resize(Device& device, std::int64_t rows, std::int64_t cols) {
    make_room(memory_, device, Place::kDevice,
              rows * cols * static_cast<std::int64_t>(sizeof(float)), "a batch on the device");
    rows_ = rows;
    cols_ = cols;
  }

  std::int64_t bytes() const { return rows_ * cols_ * static_cast<std::int64_t>(sizeof(float)); }
  float* data() const { return reinterpret_cast<float*>(memory_.data()); }

  /// Valid until the next resize.
  FloatMatrix view() const {
    return {memory_.data(), FloatType::kFp32, rows_, cols_, cols_, Place::kDevice};
  }

 private:
  Memory memory_;
  std::int64_t rows_ = 0, cols_ = 0;
};

}  // namespace satrap::backend
