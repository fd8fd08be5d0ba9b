// Forward and backward of HostDevice, with the functions of kernels.
#include <algorithm>
#include <cmath>
#include <span>

#include "satrap/core/error.h"
#include "satrap/core/float_codec.h"
#include "satrap/kernels/pool.h"
#include "satrap/kernels/row_update.h"
#include "src/backend/host_device.h"

namespace satrap::backend {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Vectors of `type` at element `at` of an array, as floats.
void load(FloatType type, const void* array, std::int64_t at, std::span<float> out) {
  const auto* bytes = static_cast<const std::byte*>(array) + at * bytes_of(type);
  decode_floats(type, {bytes, out.size() * index(bytes_of(type))}, out);
}

}  // namespace

void HostDevice::pool_forward(const CacheView& cache,
                              const Bags& bags,
                              const PlanView& plan,
                              FloatType out_type,
                              void* out,
                              StreamRef) {
  const std::int64_t dim = cache.layout.padded_dim;
  vector_.resize(index(dim));
  sum_.resize(index(dim));
  const auto pool = [&](std::int64_t begin, std::int64_t end, std::int64_t at) {
    std::ranges::fill(sum_, 0.0F);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int32_t unique = plan.unique_of[i];
      if (unique < 0 || plan.slots[unique] < 0) continue;
      load(cache.layout.weight_type, cache.rows + plan.slots[unique] * cache.layout.device_stride,
           0, vector_);
      for (std::size_t d = 0; d < sum_.size(); ++d) {
        sum_[d] = std::fma(plan.coefficients[i], vector_[d], sum_[d]);
      }
    }
    auto* to = static_cast<std::byte*>(out) + at * bytes_of(out_type);
    encode_floats(out_type, sum_, {to, index(dim * bytes_of(out_type))});
  };
  for (std::int64_t b = 0; b < bags.num_features * bags.num_examples; ++b) {
    const BagFeature& feature = bags.features[b / bags.num_examples];
    const std::int64_t begin = bags.offsets[b], end = bags.offsets[b + 1];
    const std::int64_t at = b % bags.num_examples * bags.row_stride + feature.column;
    if (feature.pooling != Pooling::kSequence) {
      pool(begin, end, at);
      continue;
    }
    for (std::int64_t e = 0; e < feature.vectors_per_row; ++e) {
      pool(std::min(begin + e, end), std::min(begin + e + 1, end), at + e * dim);
    }
  }
}

const float* HostDevice::sum_gradient(const PlanView& plan,
                                      std::int64_t unique,
                                      FloatType grad_type,
                                      const void* grad,
                                      std::int64_t padded_dim) {
  const std::int64_t begin = plan.segments[unique];
  const std::int64_t count = plan.segments[unique + 1] - begin;
  offsets_.resize(index(count));
  for (std::int64_t j = 0; j < count; ++j) {
    const std::uint32_t quad = plan.occurrence_targets[begin + j];
    SATRAP_CHECK(quad < 1U << 30, "a gradient of more than 2^32 elements on the host");
    offsets_[index(j)] = 4 * quad;
  }
  const auto* floats = static_cast<const float*>(grad);
  if (grad_type != FloatType::kFp32) {  // as floats, one vector after the other
    decoded_.resize(index(count * padded_dim));
    for (std::int64_t j = 0; j < count; ++j) {
      load(grad_type, grad, offsets_[index(j)],
           std::span(decoded_).subspan(index(j * padded_dim), index(padded_dim)));
      offsets_[index(j)] = static_cast<std::uint32_t>(j * padded_dim);
    }
    floats = decoded_.data();
  }
  sum_.resize(index(padded_dim));
  scratch_.resize(index(2 * padded_dim));
  reduce_segment({floats, offsets_.data(), plan.occurrence_coefficients + begin, count}, 0, count,
                 sum_.data(), scratch_.data(), padded_dim);
  return sum_.data();
}

void HostDevice::backward_update(const CacheView& cache,
                                 const PlanView& plan,
                                 FloatType grad_type,
                                 const void* grad,
                                 RowOptimizerType optimizer,
                                 const TableStep* steps,
                                 StreamRef) {
  if (plan.num_ids == 0) return;
  const RowLayout& layout = cache.layout;
  row_.resize(index(layout.row_bytes));
  vector_.resize(index(layout.dim));
  for (std::int64_t u = 0; u < plan.counts->unique; ++u) {
    const std::int32_t slot = plan.slots[u];
    if (slot < 0) continue;
    const float* const gradient = sum_gradient(plan, u, grad_type, grad, layout.padded_dim);
    const TableStep& step =
        steps[static_cast<std::size_t>(table_of(key_of_tag(plan.unique_tags[u])))];
    std::byte* const row = cache.rows + slot * layout.device_stride;
    layout.from_device(row, row_.data());
    with_optimizer(optimizer, [&](auto type) {
      layout.change(row_.data(), step.rounding_seed, vector_.data(),
                    [&](float* weights, float* state) {
                      update_row<type()>(step.step, weights, state, gradient, layout.dim);
                    });
    });
    note_update(*reinterpret_cast<RowHeader*>(row_.data()), step.number);
    layout.to_device(row_.data(), row);
    if (slot < cache.size.num_slots()) cache.dirty[slot] = kChanged;
  }
}

void HostDevice::backward_gradients(const RowLayout& layout,
                                    const PlanView& plan,
                                    FloatType grad_type,
                                    const void* grad,
                                    float* out,
                                    StreamRef) {
  if (plan.num_ids == 0) return;
  for (std::int64_t u = 0; u < plan.counts->unique; ++u) {
    const float* const gradient = sum_gradient(plan, u, grad_type, grad, layout.padded_dim);
    std::copy_n(gradient, layout.padded_dim, out + u * layout.padded_dim);
  }
}

}  // namespace satrap::backend
