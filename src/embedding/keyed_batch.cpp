#include "src/embedding/keyed_batch.h"

#include "satrap/backend/operations.h"
#include "satrap/core/error.h"
#include "src/embedding/check_batch.h"
#include "src/embedding/index.h"
#include "src/embedding/pool_rows.h"

namespace satrap::embedding {
namespace {

/// Vectors side by side as a cache: the slot of a key is the place of its vector.
backend::CacheView cache_of(const float* vectors, const RowLayout& rows) {
  backend::CacheView view;
  view.layout = {.dim = rows.dim,
                 .padded_dim = rows.padded_dim,
                 .device_stride = rows.padded_dim * bytes_of(FloatType::kFp32),
                 .weight_type = FloatType::kFp32};
  view.rows = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(vectors));  // only read
  return view;
}

}  // namespace

void KeyedBatch::make_plan(const data::Batch& batch) {
  check_batch(batch, cached_.on_device, cached_.on_device.output_width);
  num_examples_ = batch.num_examples;
  cached_.device.use_on_this_thread();
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    GroupPart& part = *parts_[g];
    part.batch.fill(batch, cached_.on_device.output_width);
    part.batch.upload(cached_.planning);
    cached_.rooms_by_key[g].make(part, 0);
    constexpr std::int64_t kNoSets = 1;  // nothing is looked up in a cache
    cached_.device.build_plan(part.batch.bags(), kNoSets, part.group.layout.padded_dim, part.view(),
                              cached_.planning);
  }
  list_keys();
}

void KeyedBatch::list_keys() {
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    const backend::PlanView plan = parts_[g]->view();
    keys_[g].clear();
    if (plan.num_ids == 0) continue;
    tags_.resize(download_one(cached_.device, plan.counts, cached_.planning).unique);
    download(cached_.device, plan.unique_tags, std::span(tags_), cached_.planning);
    for (const std::uint64_t tag : tags_) keys_[g].push_back(backend::key_of_tag(tag));
  }
}

void KeyedBatch::set_places(std::span<const std::vector<std::int32_t>> places) {
  SATRAP_CHECK(places.size() == parts_.size(), places.size(), " lists of places for ",
               parts_.size(), " row groups");
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    SATRAP_CHECK(places[g].size() == keys_[g].size(), places[g].size(), " places for ",
                 keys_[g].size(), " keys");
    if (places[g].empty()) continue;
    cached_.device.copy(parts_[g]->view().slots, places[g].data(),
                        static_cast<std::int64_t>(places[g].size() * sizeof(std::int32_t)),
                        cached_.planning);
  }
  cached_.planning.wait_until_idle();
}

void KeyedBatch::pool(const data::Batch& batch,
                      std::span<const float* const> weights,
                      const FloatMatrix& pooled,
                      const FloatMatrix& mask) const {
  cached_.check_on_device(pooled, num_examples_);
  SATRAP_CHECK(batch.num_examples == num_examples_, "pooling of a batch of ", batch.num_examples,
               " examples with the plan of another");
  const FeatureLayout& on_host = cached_.on_host;
  write_mask(on_host, batch, host_values(mask, num_examples_, on_host.mask_width, "mask"),
             mask.stride);
  cached_.device.use_on_this_thread();
  const backend::StreamTimes::Span span(cached_.times, backend::StreamTimes::kLookup);
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    const GroupPart& part = *parts_[g];
    cached_.device.pool_forward(cache_of(weights[g], part.group.layout), part.batch.bags(),
                                part.view(), FloatType::kFp32, pooled.data, cached_.compute);
  }
}

void KeyedBatch::sum_gradients(const ConstFloatMatrix& grad_pooled,
                               std::span<float* const> gradients) const {
  cached_.check_on_device(grad_pooled, num_examples_);
  cached_.device.use_on_this_thread();
  const backend::StreamTimes::Span span(cached_.times, backend::StreamTimes::kUpdate);
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    const backend::PlanView plan = parts_[g]->view();
    cached_.device.backward_gradients(parts_[g]->group.layout, plan, FloatType::kFp32,
                                      grad_pooled.data, plan.slots, gradients[g], cached_.compute);
  }
}

}  // namespace satrap::embedding
