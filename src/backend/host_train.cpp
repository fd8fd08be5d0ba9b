// Forward and backward of HostDevice, with the functions of kernels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "satrap/core/error.h"
#include "satrap/core/float_codec.h"
#include "satrap/kernels/pool.h"
#include "satrap/kernels/row_update.h"
#include "src/backend/arguments.h"
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

/// Pools by the loops of `kernels`, which need a row for every id.
void HostDevice::pool_present(const CacheView& cache,
                              const Bags& bags,
                              const PlanView& plan,
                              float* out) {
  constexpr std::int64_t kExamplesPerPiece = 512;
  const GatherSource source{rows_.data(), 0, plan.unique_of, plan.coefficients};
  const std::int64_t num_pieces = (bags.num_examples + kExamplesPerPiece - 1) / kExamplesPerPiece;
  for_each(bags.num_features * num_pieces, [&](std::int64_t unit) {
    const BagFeature& feature = bags.features[unit / num_pieces];
    const std::int64_t begin = unit % num_pieces * kExamplesPerPiece;
    const std::int64_t count = std::min(bags.num_examples - begin, kExamplesPerPiece);
    const std::int64_t* const offsets =
        bags.offsets + unit / num_pieces * bags.num_examples + begin;
    float* const to = out + begin * bags.row_stride + feature.column;
    with_float_type(cache.layout.weight_type, [&]<class Weight>(std::type_identity<Weight>) {
      with_dim(cache.layout.padded_dim, [&](auto dim) {
        if (feature.pooling == Pooling::kSequence) {
          pool_sequences<Weight>(source, offsets, count, feature.vectors_per_row, to,
                                 bags.row_stride, dim);
        } else {
          pool_bags<Weight>(source, offsets, count, to, bags.row_stride, dim);
        }
      });
    });
  });
}

void HostDevice::pool_forward(const PoolForward& operation, StreamRef) {
  const auto& [cache, bags, plan, out_type, out] = operation;
  const std::int64_t num_unique = plan.num_ids == 0 ? 0 : plan.counts->unique;
  rows_.resize(index(num_unique));
  bool has_all = out_type == FloatType::kFp32;
  for (std::int64_t u = 0; u < num_unique; ++u) {
    has_all = has_all && plan.slots[u] >= 0;
    rows_[index(u)] = cache.rows + plan.slots[u] * cache.layout.device_stride;
  }
  if (has_all) return pool_present(cache, bags, plan, static_cast<float*>(out));
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

/// The occurrences of all keys, with the gradient as floats.
Occurrences HostDevice::occurrences_of(const PlanView& plan,
                                       FloatType grad_type,
                                       const void* grad,
                                       std::int64_t padded_dim) {
  const std::int64_t count = plan.counts->occurrences;
  offsets_.resize(index(count));
  for (std::int64_t j = 0; j < count; ++j) {
    const std::uint32_t quad = plan.occurrence_targets[j];
    SATRAP_CHECK(quad < 1U << 30, "a gradient of more than 2^32 elements on the host");
    offsets_[index(j)] = 4 * quad;
  }
  const auto* floats = static_cast<const float*>(grad);
  if (grad_type != FloatType::kFp32) {  // one vector after the other
    decoded_.resize(index(count * padded_dim));
    for (std::int64_t j = 0; j < count; ++j) {
      load(grad_type, grad, offsets_[index(j)],
           std::span(decoded_).subspan(index(j * padded_dim), index(padded_dim)));
      offsets_[index(j)] = static_cast<std::uint32_t>(j * padded_dim);
    }
    floats = decoded_.data();
  }
  return {floats, offsets_.data(), plan.occurrence_coefficients, count};
}

/// Calls visit(unique, its summed gradient [padded_dim], scratch of [2 * padded_dim] floats and a
/// row) for all keys, in parallel.
template <class Visit>
void HostDevice::for_each_gradient(const PlanView& plan,
                                   const Occurrences& occurrences,
                                   const RowLayout& layout,
                                   Visit&& visit) {
  constexpr std::int64_t kKeysPerPiece = 512;
  const std::int64_t padded_dim = layout.padded_dim;
  const std::int64_t floats =
      3 * padded_dim + layout.row_bytes / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t num_unique = plan.counts->unique;
  const std::int64_t num_pieces = (num_unique + kKeysPerPiece - 1) / kKeysPerPiece;
  scratch_.resize(index(num_pieces * floats));
  for_each(num_pieces, [&](std::int64_t piece) {
    float* const sum = scratch_.data() + piece * floats;
    const std::int64_t end = std::min(num_unique, (piece + 1) * kKeysPerPiece);
    with_dim(padded_dim, [&](auto dim) {
      for (std::int64_t u = piece * kKeysPerPiece; u < end; ++u) {
        reduce_segment(occurrences, plan.segments[u], plan.segments[u + 1], sum, sum + padded_dim,
                       dim);
        visit(u, sum, sum + padded_dim);
      }
    });
  });
}

namespace {

/// Updates a row in a device's layout. `scratch`: [padded_dim], then a row.
template <RowOptimizerType kType>
void update_on_device(const RowLayout& layout,
                      std::byte* row,
                      const TableStep& step,
                      const float* gradient,
                      float* scratch) {
  const auto update = [&](float* weights, float* state) {
    update_row<kType>(step.step, weights, state, gradient, layout.dim);
  };
  std::byte* const header_at = row + layout.device_header_offset();
  if (layout.weight_type == FloatType::kFp32) {
    update(reinterpret_cast<float*>(row),
           reinterpret_cast<float*>(row + layout.device_state_offset()));
  } else {
    auto* const copy = reinterpret_cast<std::byte*>(scratch + layout.padded_dim);
    layout.from_device(row, copy);
    layout.change(copy, step.rounding_seed, scratch, update);
    layout.to_device(copy, row);
  }
  RowHeader header;
  std::memcpy(&header, header_at, sizeof(header));
  note_update(header, step.number);
  std::memcpy(header_at, &header, sizeof(header));
}

}  // namespace

void HostDevice::backward_update(const BackwardUpdate& operation, StreamRef) {
  const auto& [cache, plan, grad_type, grad, optimizer, steps] = operation;
  if (plan.num_ids == 0) return;
  const RowLayout& layout = cache.layout;
  const Occurrences occurrences = occurrences_of(plan, grad_type, grad, layout.padded_dim);
  const std::int64_t distance = gather_distance(layout.padded_dim);
  const std::int64_t last = plan.counts->unique - 1;
  with_optimizer(optimizer, [&](auto type) {
    for_each_gradient(
        plan, occurrences, layout, [&](std::int64_t u, const float* gradient, float* scratch) {
          const std::int32_t later = plan.slots[std::min(u + distance, last)];
          if (later >= 0) {
            prefetch_write(cache.rows + later * layout.device_stride, layout.row_bytes);
          }
          const std::int32_t slot = plan.slots[u];
          if (slot < 0) return;
          const Key key = key_of_tag(plan.unique_tags[u]);
          update_on_device<type()>(layout, cache.rows + slot * layout.device_stride,
                                   steps[static_cast<std::size_t>(table_of(key))], gradient,
                                   scratch);
          if (slot < cache.size.num_slots()) cache.dirty[slot] = kChanged;
        });
  });
}

void HostDevice::backward_gradients(const BackwardGradients& operation, StreamRef) {
  const auto& [layout, plan, grad_type, grad, places, out] = operation;
  if (plan.num_ids == 0) return;
  for_each_gradient(plan, occurrences_of(plan, grad_type, grad, layout.padded_dim), layout,
                    [&](std::int64_t u, const float* gradient, float*) {
                      const std::int64_t place = places == nullptr ? u : places[u];
                      if (place < 0) return;
                      std::copy_n(gradient, layout.padded_dim, out + place * layout.padded_dim);
                    });
}

void HostDevice::cancel_update(const CancelUpdate& operation, StreamRef) {
  const PlanView& plan = operation.plan;
  if (plan.num_ids > 0 && *operation.flag != 0.0F) *plan.counts = {};
}

void HostDevice::dropout_factors(const DropoutFactors& operation, StreamRef) {
  const auto& [dropout, first_example, rows, columns, out, stride] = operation;
  for (std::int64_t r = 0; r < rows; ++r) {
    const RandomStream draws = dropout.draws_of(first_example + r);
    for (std::int64_t c = 0; c < columns; ++c) out[r * stride + c] = dropout.factor(draws, c);
  }
}

void HostDevice::add_in_order(const AddInOrder& operation, StreamRef) {
  check_arguments(operation);
  const auto& [vectors, count, sum] = operation;
  for (std::int64_t i = 0; i < count; ++i) {
    float total = vectors.front()[i];
    for (const float* const vector : vectors.subspan(1)) total += vector[i];
    sum[i] = total;
  }
}

}  // namespace satrap::backend
