#include "satrap/backend/row_layout.h"

#include "satrap/core/error.h"

namespace satrap::backend {

namespace {
constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
}  // namespace

RowLayout RowLayout::of(std::int64_t dim, FloatType weight_type, const RowOptimizer& optimizer) {
  if (dim < 1 || dim > kMaxDim) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("rows in device memory have 1 to ", kMaxDim, " weights, not ", dim));
  }
  RowLayout layout;
  layout.dim = dim;
  layout.padded_dim = round_up(dim, 4);
  layout.weight_type = weight_type;
  layout.state_offset_bytes = round_up(layout.padded_dim * bytes_of(weight_type), 16);
  layout.state_floats = optimizer.state_floats(layout.padded_dim);
  layout.stride_bytes = round_up(layout.state_offset_bytes + layout.state_floats * 4, 32);
  return layout;
}

}  // namespace satrap::backend
