#include "satrap/embedding/batch_by_key.h"

#include "satrap/backend/operations.h"
#include "satrap/core/error.h"
#include "src/embedding/cached_parts.h"
#include "src/embedding/check_batch.h"
#include "src/embedding/index.h"
#include "src/embedding/row_cache.h"

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

BatchByKey::BatchByKey(CachedRows& cached)
    : cached_(*cached.cache_),
      parts_(cached_.make_parts()),
      lent_(std::make_unique<CachedParts>(cached_)),
      keys_(parts_.size()) {}

BatchByKey::~BatchByKey() = default;

void BatchByKey::make_plan(const data::Batch& batch) {
  check_batch(batch, cached_.on_device, cached_.on_device.output_width);
  num_examples_ = batch.num_examples;
  lent_->begin();  // its update was queued last
  cached_.device.use_on_this_thread();
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    GroupPart& part = *parts_[g];
    part.batch.fill(batch, cached_.on_device.output_width);
    part.batch.upload(cached_.planning);
    cached_.rooms_by_key[g].make(part, 0);
    constexpr std::int64_t kNoSets = 1;  // nothing is looked up in a cache
    cached_.device.build_plan(
        {part.batch.bags(), kNoSets, part.group.layout.padded_dim, part.view()}, cached_.planning);
  }
  list_keys();
}

void BatchByKey::list_keys() {
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    const backend::PlanView plan = parts_[g]->view();
    keys_[g].clear();
    if (plan.num_ids == 0) continue;
    tags_.resize(download_one(cached_.device, plan.counts, cached_.planning).unique);
    download(cached_.device, plan.unique_tags, std::span(tags_), cached_.planning);
    for (const std::uint64_t tag : tags_) keys_[g].push_back(backend::key_of_tag(tag));
  }
}

void BatchByKey::set_places(std::span<const std::vector<std::int32_t>> places) {
  SATRAP_CHECK(places.size() == parts_.size(), places.size(), " lists of places for ",
               parts_.size(), " table groups");
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

void BatchByKey::request(std::int64_t step,
                         std::span<const std::vector<Key>> lent,
                         std::int64_t num_examples) {
  SATRAP_CHECK(lent.size() == lent_->parts.size(), lent.size(), " lists of keys for ",
               lent_->parts.size(), " table groups");
  cached_.fill(lent_->parts, lent, num_examples, step);
  lent_->make_plan(step);
  lent_->request(step);
}

void BatchByKey::wait() { lent_->wait(); }

void BatchByKey::gather(std::span<float* const> weights) const {
  cached_.device.use_on_this_thread();
  const backend::StreamTimes::Span span(cached_.options.times, backend::StreamTimes::kLookup);
  lent_->pool(weights);
}

void BatchByKey::pool(const data::Batch& batch,
                      std::span<const float* const> weights,
                      const FloatMatrix& pooled,
                      const FloatMatrix& mask) const {
  SATRAP_CHECK(batch.num_examples == num_examples_, "pooling of a batch of ", batch.num_examples,
               " examples with the plan of another");
  cached_.pool_to(batch, pooled, mask, [&](float* out) {
    for (std::size_t g = 0; g < parts_.size(); ++g) {
      const GroupPart& part = *parts_[g];
      cached_.device.pool_forward({cache_of(weights[g], part.group.layout), part.batch.bags(),
                                   part.view(), FloatType::kFp32, out},
                                  cached_.compute);
    }
  });
}

void BatchByKey::sum_gradients(const ConstFloatMatrix& grad_pooled,
                               std::span<float* const> gradients) const {
  cached_.device.use_on_this_thread();
  const auto* gradient = static_cast<const float*>(grad_pooled.data);
  if (grad_pooled.place == Place::kDevice) {
    cached_.check_on_device(grad_pooled, num_examples_);
  } else {
    gradient = cached_.columns.to_read(gradient, num_examples_, cached_.compute);
  }
  const backend::StreamTimes::Span span(cached_.options.times, backend::StreamTimes::kUpdate);
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    const backend::PlanView plan = parts_[g]->view();
    cached_.device.backward_gradients(
        {parts_[g]->group.layout, plan, FloatType::kFp32, gradient, plan.slots, gradients[g]},
        cached_.compute);
  }
}

void BatchByKey::update(std::span<const float* const> gradients,
                        std::int64_t step,
                        const float* flag) {
  lent_->update(gradients, step, flag);
}

void BatchByKey::skip(std::int64_t step) { cached_.note_applied(step); }

}  // namespace satrap::embedding
