#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/dense/dense_network.h"
#include "src/dense/matrix.h"

namespace satrap::dense {

/// The columns of pooled rows in a device's memory, beside those in the host's.
class FieldColumns {
 public:
  explicit FieldColumns(const InputShape& shape);

  std::int64_t host_width() const { return host_width_; }
  std::int64_t device_width() const { return device_width_; }

  /// Both copy the rows of `host` in the other layout, device_width() floats each. Columns of no
  /// field become zero.
  void to_device(ConstMatrix host, float* device) const;
  void to_host(const float* device, Matrix host) const;

  /// An expression of TorchScript: the rows `name`, in a device's columns, in the host's.
  std::string narrowed(const std::string& name) const;

 private:
  // Fields of equal width, equally far apart.
  struct Run {
    std::int64_t host, device;  // first column
    std::int64_t width, distance, count;
  };
  std::vector<Run> runs_;
  std::int64_t host_width_ = 0, device_width_ = 0;
};

}  // namespace satrap::dense
