#include "src/embedding/cached_batch.h"

#include <algorithm>
#include <cstdint>

#include "satrap/core/error.h"
#include "src/embedding/check_batch.h"
#include "src/embedding/index.h"
#include "src/embedding/pool_rows.h"

namespace satrap::embedding {
namespace {

constexpr std::uintptr_t kVectorBytes = 16;  // kernels load and store so many at a time

/// Copies the vectors of all features between two layouts.
void copy_columns(const FeatureLayout& from_layout,
                  const float* from,
                  std::int64_t from_stride,
                  const FeatureLayout& to_layout,
                  float* to,
                  std::int64_t to_stride,
                  std::int64_t num_examples,
                  ThreadPool& pool) {
  constexpr std::int64_t kExamplesPerPiece = 512;
  const std::int64_t num_pieces = (num_examples + kExamplesPerPiece - 1) / kExamplesPerPiece;
  pool.parallel_for(num_pieces, [&](std::int64_t piece) {
    const std::int64_t begin = piece * kExamplesPerPiece;
    const std::int64_t end = std::min(num_examples, begin + kExamplesPerPiece);
    for (std::int64_t e = begin; e < end; ++e) {
      for (std::size_t f = 0; f < from_layout.features.size(); ++f) {
        const PlacedFeature& source = from_layout.features[f];
        const PlacedFeature& target = to_layout.features[f];
        const std::int64_t dim = std::min(source.vector_width, target.vector_width);
        for (std::int64_t v = 0; v < source.spec.max_length; ++v) {
          std::copy_n(from + e * from_stride + source.column + v * source.vector_width, dim,
                      to + e * to_stride + target.column + v * target.vector_width);
        }
      }
    }
  });
}

}  // namespace

CachedBatch::CachedBatch(RowCache& cached)
    : BatchRows(cached.on_host), cached_(cached), rows_(cached) {}

CachedBatch::~CachedBatch() = default;

void CachedBatch::make_plan(Planner&, const data::Batch& batch, std::int64_t step) {
  check_batch(batch, cached_.on_device, cached_.on_device.output_width);
  is_read_ = false;
  num_examples_ = batch.num_examples;
  num_ids_ = batch.ids.size();
  cached_.fill(rows_.parts, batch, step);
  rows_.make_plan(step);
}

void CachedBatch::request(std::int64_t step, std::int64_t) { rows_.request(step); }

std::optional<std::int64_t> CachedBatch::wait() {
  rows_.wait();
  return std::nullopt;
}

void CachedBatch::read(Planner& planner, const data::Batch& batch) {
  cached_.flush();
  if (!reader_) reader_ = cached_.uncached.make_rows();
  reader_->read(planner, batch);
  is_read_ = true;
}

void CachedBatch::pool(const data::Batch& batch,
                       const FloatMatrix& pooled,
                       const FloatMatrix& mask) const {
  if (is_read_) return reader_->pool(batch, pooled, mask);
  SATRAP_CHECK(batch.num_examples == num_examples_ && batch.ids.size() == num_ids_,
               "pooling of a batch of ", batch.num_examples, " examples with the plan of another");
  float* const out = host_values(pooled, num_examples_, layout_.output_width, "pooled output");
  float* const mask_out = host_values(mask, num_examples_, layout_.mask_width, "mask");
  cached_.device.use_on_this_thread();
  const std::int64_t width = cached_.on_device.output_width;
  float* const to = is_device_matrix(out, pooled.stride) ? out : columns();
  for (std::size_t g = 0; g < rows_.parts.size(); ++g) {
    cached_.device.pool_forward(cached_.caches[g]->view(), rows_.parts[g]->batch.bags(),
                                rows_.parts[g]->view(), FloatType::kFp32, to, cached_.compute);
  }
  cached_.compute.wait_until_idle();
  if (to != out) {
    copy_columns(cached_.on_device, to, width, layout_, out, pooled.stride, num_examples_,
                 cached_.pool);
  }
  write_mask(layout_, batch, mask_out, mask.stride);
}

void CachedBatch::apply(const float* gradient, std::int64_t step) {
  rows_.check_step(step);
  const std::int64_t width = cached_.on_device.output_width;
  if (!is_device_matrix(gradient, layout_.output_width)) {
    float* const padded = columns();
    std::fill_n(padded, num_examples_ * width, 0.0F);
    copy_columns(layout_, gradient, layout_.output_width, cached_.on_device, padded, width,
                 num_examples_, cached_.pool);
    gradient = padded;
  }
  cached_.update(rows_.parts, std::vector(rows_.parts.size(), gradient), step);
}

/// Whether kernels can read and write a matrix of the host as it is.
bool CachedBatch::is_device_matrix(const float* values, std::int64_t stride) const {
  return cached_.has_same_columns && stride == cached_.on_device.output_width &&
         reinterpret_cast<std::uintptr_t>(values) % kVectorBytes == 0;
}

/// A matrix in the layout of the device, for what is not.
float* CachedBatch::columns() const {
  static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= kVectorBytes);
  const std::size_t size = index(num_examples_ * cached_.on_device.output_width);
  if (cached_.columns.size() < size) cached_.columns.resize(size);
  return cached_.columns.data();
}

}  // namespace satrap::embedding
