#include "src/embedding/cached_batch.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "src/embedding/check_batch.h"
#include "src/embedding/device_columns.h"
#include "src/embedding/index.h"
#include "src/embedding/pool_rows.h"

namespace satrap::embedding {

CachedBatch::CachedBatch(RowCache& cached)
    : BatchRows(cached.on_host), cached_(cached), parts_(cached.make_parts()) {}

CachedBatch::~CachedBatch() { cached_.fetcher.forget(step_); }

void CachedBatch::make_plan(Planner&, const data::Batch& batch, std::int64_t step) {
  check_batch(batch, cached_.on_device, cached_.on_device.output_width);
  is_read_ = false;
  num_examples_ = batch.num_examples;
  num_ids_ = batch.ids.size();
  step_ = step;
  cached_.fill(parts_, batch, step);
  cached_.sample(parts_, step);
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    cached_.caches[g]->make_plan(*parts_[g]);
  }
}

void CachedBatch::request(std::int64_t step, std::int64_t) {
  SATRAP_CHECK(step == step_, "request of step ", step, " with the plan of step ", step_);
  cached_.resolve(parts_, step);
  ask_for_missing();
}

std::optional<std::int64_t> CachedBatch::wait() {
  cached_.fetcher.wait(step_);
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
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    cached_.device.pool_forward(cached_.caches[g]->view(), parts_[g]->batch.bags(),
                                parts_[g]->view(), FloatType::kFp32, to, cached_.compute);
  }
  cached_.compute.wait_until_idle();
  if (to != out) {
    copy_columns(cached_.on_device, to, width, layout_, out, pooled.stride, num_examples_,
                 cached_.pool);
  }
  write_mask(layout_, batch, mask_out, mask.stride);
}

void CachedBatch::apply(const float* gradient, std::int64_t step) {
  SATRAP_CHECK(step == step_, "update of step ", step, " with the plan of step ", step_);
  const std::int64_t width = cached_.on_device.output_width;
  if (!is_device_matrix(gradient, layout_.output_width)) {
    float* const padded = columns();
    std::fill_n(padded, num_examples_ * width, 0.0F);
    copy_columns(layout_, gradient, layout_.output_width, cached_.on_device, padded, width,
                 num_examples_, cached_.pool);
    gradient = padded;
  }
  cached_.update(parts_, gradient, step);
}

/// Whether kernels can read and write a matrix of the host as it is.
bool CachedBatch::is_device_matrix(const float* values, std::int64_t stride) const {
  return cached_.has_same_columns && stride == cached_.on_device.output_width &&
         is_aligned_for_kernels(values);
}

/// A matrix in the layout of the device, for what is not.
float* CachedBatch::columns() const {
  const std::size_t size = index(num_examples_ * cached_.on_device.output_width);
  if (cached_.columns.size() < size) cached_.columns.resize(size);
  return cached_.columns.data();
}

/// Those that are on their way to the store come from there.
void CachedBatch::ask_for_missing() {
  missing_.clear();
  for (const auto& part : parts_) {
    const std::int64_t row_bytes = part->row_bytes();
    const std::int64_t bytes = std::ssize(part->missing) * row_bytes;
    if (bytes > part->staging.bytes()) {
      part->staging = {};
      part->staging = {cached_.device, backend::Place::kPinnedHost, bytes + bytes / 4,
                       "rows that are fetched"};
    }
    for (std::size_t i = 0; i < part->missing.size(); ++i) {
      missing_.emplace_back(part->missing[i],
                            part->staging.data() + static_cast<std::int64_t>(i) * row_bytes);
    }
    list_.assign(1, static_cast<std::int32_t>(part->missing.size()));
    list_.insert(list_.end(), part->for_slots.begin(), part->for_slots.end());
    part->slots.upload(list_, cached_.planning);
  }
  std::ranges::sort(missing_);
  keys_.clear();
  rows_.clear();
  for (const auto& [key, row] : missing_) {
    keys_.push_back(key);
    rows_.push_back(row);
  }
  cached_.write_back.find(keys_, rows_, found_);
  std::size_t count = 0;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (found_[i]) continue;
    keys_[count] = keys_[i];
    rows_[count++] = rows_[i];
  }
  keys_.resize(count);
  rows_.resize(count);
  cached_.count_fetched(keys_);
  cached_.fetcher.start({.step = step_, .keys = keys_, .rows = rows_, .arrive = [this] {
                           cached_.device.use_on_this_thread();
                           for (std::size_t g = 0; g < parts_.size(); ++g) {
                             cached_.caches[g]->scatter(*parts_[g], cached_.copies);
                           }
                           cached_.copies.wait_until_idle();
                         }});
}

}  // namespace satrap::embedding
