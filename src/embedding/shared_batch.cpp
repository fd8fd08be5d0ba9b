#include "src/embedding/shared_batch.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "satrap/backend/operations.h"
#include "satrap/core/error.h"
#include "src/embedding/check_batch.h"
#include "src/embedding/pool_rows.h"

namespace satrap::embedding {
namespace {

constexpr std::int64_t kRowsPerPiece = 512;

/// A row of a copy in the host's layout.
void write_copy(const RowLayout& layout, Key key, const float* weights, std::byte* row) {
  const RowHeader header{.key = key, .last_step = 0, .count = 0};
  std::memcpy(row, &header, sizeof(header));
  auto* const to = reinterpret_cast<float*>(row + RowLayout::kWeightsOffset);
  std::copy_n(weights, layout.dim, to);
  std::fill(to + layout.dim, to + layout.padded_dim, 0.0F);
}

}  // namespace

CopiedBatch::CopiedBatch(SharedCache::Impl& cache) : cache_(cache), parts_(cache.make_parts()) {}

void CopiedBatch::make_plan(const data::Batch& batch, std::int64_t step) {
  check_batch(batch, cache_.on_device, cache_.on_device.output_width);
  num_examples_ = batch.num_examples;
  num_ids_ = batch.ids.size();
  step_ = step;
  cache_.fill(parts_, batch, step);
  for (std::size_t g = 0; g < parts_.size(); ++g) cache_.caches[g]->make_plan(*parts_[g]);
}

void CopiedBatch::resolve() {
  cache_.device.use_on_this_thread();
  cache_.resolve(parts_, step_);
  list_keys();
  versions_.clear();
  for (const Place& place : places_) {
    std::atomic<std::int64_t>& version = cache_.version(place.group, place.slot);
    versions_.push_back(version);
    if (versions_.back() == kNoCopy) version = kOnItsWay;
  }
}

void CopiedBatch::list_keys() {
  places_.clear();
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    const backend::PlanView plan = parts_[g]->view();
    if (plan.num_ids == 0) continue;
    const std::size_t count = download_one(cache_.device, plan.counts, cache_.planning).unique;
    tags_.resize(count);
    slots_.resize(count);
    download(cache_.device, plan.unique_tags, std::span(tags_), cache_.planning);
    download(cache_.device, plan.slots, std::span(slots_), cache_.planning);
    for (std::size_t u = 0; u < count; ++u) {
      places_.push_back({.key = backend::key_of_tag(tags_[u]),
                         .group = static_cast<std::uint32_t>(g),
                         .unique = static_cast<std::uint32_t>(u),
                         .slot = slots_[u]});
    }
  }
  std::ranges::sort(places_, {}, &Place::key);
  keys_.clear();
  for (const Place& place : places_) keys_.push_back(place.key);
}

// ---------------------------------------------------------------------------- the copies are read

std::int64_t CopiedBatch::take(std::span<const float* const> weights,
                               std::span<const std::int64_t> versions) {
  SATRAP_CHECK(weights.size() == keys_.size() && versions.size() == keys_.size(), weights.size(),
               " rows of ", versions.size(), " versions for ", keys_.size(), " keys");
  cache_.device.use_on_this_thread();
  cache_.note_pooled(step_ - 1);
  scatter(weights);
  std::int64_t misses = 0;
  for (std::size_t u = 0; u < places_.size(); ++u) {
    const Place& place = places_[u];
    std::atomic<std::int64_t>& version = cache_.version(place.group, place.slot);
    if (versions[u] >= 0) version = std::max(version.load(), versions[u]);
    misses += weights[u] != nullptr ? 1 : 0;
  }
  cache_.count_taken(std::ssize(places_) - misses, misses);
  return check_versions();
}

/// The bound is enforced here, where the copies are about to be read.
std::int64_t CopiedBatch::check_versions() const {
  const std::int64_t oldest = cache_.staleness.oldest_version(step_);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Place& place : places_) {
    const std::int64_t version = cache_.version(place.group, place.slot);
    least = std::min(least, version);
    SATRAP_CHECK(version >= std::max<std::int64_t>(0, oldest), "step ", step_,
                 " would read the copy of id ", id_of(place.key), " of table ",
                 static_cast<int>(table_of(place.key)), " as of E_", version,
                 "; the bound allows E_", oldest, " or a later one");
  }
  return least;
}

void CopiedBatch::scatter(std::span<const float* const> weights) {
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    GroupPart& part = *parts_[g];
    const RowLayout& layout = part.group.layout;
    sent_.clear();
    slots_.assign(1, 0);
    for (std::size_t u = 0; u < places_.size(); ++u) {
      if (places_[u].group != g || weights[u] == nullptr) continue;
      sent_.push_back(u);
      slots_.push_back(places_[u].slot);
    }
    const auto count = std::ssize(sent_);
    if (count == 0) continue;
    slots_[0] = static_cast<std::int32_t>(count);
    make_room(part.staging, cache_.device, backend::Place::kPinnedHost, count * layout.row_bytes,
              "rows that have come");
    cache_.pool.parallel_for((count + kRowsPerPiece - 1) / kRowsPerPiece, [&](std::int64_t piece) {
      const std::int64_t end = std::min(count, (piece + 1) * kRowsPerPiece);
      for (std::int64_t i = piece * kRowsPerPiece; i < end; ++i) {
        const std::size_t u = sent_[index(i)];
        write_copy(layout, places_[u].key, weights[u], part.staging.data() + i * layout.row_bytes);
      }
    });
    const std::int32_t* const listed = part.slots.upload(slots_, cache_.compute);
    cache_.device.scatter_rows(cache_.caches[g]->view(), listed + 1,
                               reinterpret_cast<const std::uint32_t*>(listed), 0, count,
                               part.staging.data(), cache_.compute);
  }
}

void CopiedBatch::pool(const data::Batch& batch,
                       const FloatMatrix& pooled,
                       const FloatMatrix& mask) const {
  SATRAP_CHECK(batch.num_examples == num_examples_ && batch.ids.size() == num_ids_,
               "pooling of a batch of ", batch.num_examples, " examples with the plan of another");
  const FeatureLayout& on_host = cache_.on_host;
  float* const out = host_values(pooled, num_examples_, on_host.output_width, "pooled output");
  float* const mask_out = host_values(mask, num_examples_, on_host.mask_width, "mask");
  cache_.device.use_on_this_thread();
  float* const to = cache_.pooled_columns.to_write(out, pooled.stride, num_examples_);
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    cache_.device.pool_forward(cache_.caches[g]->view(), parts_[g]->batch.bags(), parts_[g]->view(),
                               FloatType::kFp32, to, cache_.compute);
  }
  cache_.pooled_columns.finish(out, pooled.stride, num_examples_, cache_.compute);
  write_mask(on_host, batch, mask_out, mask.stride);
  cache_.note_pooled(step_);
}

// ------------------------------------------------------------------------------------- gradients

void CopiedBatch::sum_gradients(const float* gradient, std::span<float* const> gradients) {
  SATRAP_CHECK(gradients.size() == places_.size(), gradients.size(), " gradients for ",
               places_.size(), " keys");
  if (places_.empty()) return;
  cache_.device.use_on_this_thread();
  gradient = cache_.gradient_columns.to_read(gradient, num_examples_, cache_.updates);
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    const RowLayout& layout = parts_[g]->group.layout;
    const std::int64_t count =
        std::ranges::count(places_, static_cast<std::uint32_t>(g), &Place::group);
    const std::int64_t bytes = count * layout.padded_dim * static_cast<std::int64_t>(sizeof(float));
    if (count == 0) continue;
    make_room(cache_.sums, cache_.device, backend::Place::kDevice, bytes, "summed gradients");
    make_room(cache_.sums_on_host, cache_.device, backend::Place::kPinnedHost, bytes,
              "summed gradients");
    cache_.device.backward_gradients(layout, parts_[g]->view(), FloatType::kFp32, gradient, nullptr,
                                     reinterpret_cast<float*>(cache_.sums.data()), cache_.updates);
    cache_.device.copy(cache_.sums_on_host.data(), cache_.sums.data(), bytes, cache_.updates);
    cache_.updates.wait_until_idle();
    const auto* const sums = reinterpret_cast<const float*>(cache_.sums_on_host.data());
    for (std::size_t u = 0; u < places_.size(); ++u) {
      if (places_[u].group != g) continue;
      std::copy_n(sums + places_[u].unique * layout.padded_dim, layout.dim, gradients[u]);
    }
  }
}

}  // namespace satrap::embedding
