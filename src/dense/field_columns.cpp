#include "src/dense/field_columns.h"

#include <algorithm>

#include "satrap/core/error.h"

namespace satrap::dense {

FieldColumns::FieldColumns(const InputShape& shape)
    : host_width_(shape.pooled_width()),
      device_width_(shape.device_columns.empty() ? host_width_ : shape.device_width) {
  std::int64_t column = 0;
  for (std::size_t f = 0; f < shape.field_widths.size(); ++f) {
    const std::int64_t width = shape.field_widths[f];
    const std::int64_t at = shape.device_columns.empty() ? column : shape.device_columns[f];
    const std::int64_t next = f + 1 == shape.field_widths.size() ? device_width_
                              : shape.device_columns.empty()     ? column + width
                                                                 : shape.device_columns[f + 1];
    const std::int64_t distance = next - at;
    Run* const last = runs_.empty() ? nullptr : &runs_.back();
    if (last != nullptr && last->width == width && last->distance == distance) {
      ++last->count;
    } else {
      runs_.push_back({column, at, width, distance, 1});
    }
    column += width;
  }
}

void FieldColumns::to_device(ConstMatrix host, float* device) const {
  std::fill_n(device, host.rows * device_width_, 0.0F);
  for (std::int64_t r = 0; r < host.rows; ++r) {
    for (const Run& run : runs_) {
      for (std::int64_t f = 0; f < run.count; ++f) {
        std::copy_n(host.row(r) + run.host + f * run.width, run.width,
                    device + r * device_width_ + run.device + f * run.distance);
      }
    }
  }
}

void FieldColumns::to_host(const float* device, Matrix host) const {
  for (std::int64_t r = 0; r < host.rows; ++r) {
    for (const Run& run : runs_) {
      for (std::int64_t f = 0; f < run.count; ++f) {
        std::copy_n(device + r * device_width_ + run.device + f * run.distance, run.width,
                    host.row(r) + run.host + f * run.width);
      }
    }
  }
}

std::string FieldColumns::narrowed(const std::string& name) const {
  if (host_width_ == device_width_) return name;
  std::string parts;
  for (const Run& run : runs_) {
    const std::int64_t end = run.device + run.count * run.distance;
    parts += concat(parts.empty() ? "" : ", ", name, "[:, ", run.device, ":", end,
                    "].reshape([-1, ", run.count, ", ", run.distance, "])[:, :, 0:", run.width,
                    "].reshape([-1, ", run.count * run.width, "])");
  }
  return runs_.size() == 1 ? parts : concat("torch.cat([", parts, "], 1)");
}

}  // namespace satrap::dense
