#include "satrap/embedding/group_batch.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "satrap/backend/device.h"
#include "satrap/core/error.h"
#include "src/embedding/check_batch.h"
#include "src/embedding/index.h"

namespace satrap::embedding {
namespace {

constexpr std::int64_t kExamplesPerPiece = 512;  // of one feature: the unit of work

bool is_long(std::int64_t num_ids) { return num_ids > backend::kMaxShortBag; }

/// Looks at all of them, several at a time: a branch, or a truth value, for each would take longer.
bool has_long_bag(const std::int64_t* offsets, std::int64_t num_examples) {
  std::int64_t signs = 0;  // negative if one of the differences is
  for (std::int64_t r = 0; r < num_examples; ++r) {
    signs |= backend::kMaxShortBag - (offsets[r + 1] - offsets[r]);
  }
  return signs < 0;
}

}  // namespace

GroupBatch::GroupBatch(backend::Device& device,
                       const FeatureLayout& layout,
                       const TableGroup& group,
                       ThreadPool& pool)
    : device_(device),
      layout_(layout),
      group_(group),
      pool_(pool),
      first_ids_(group.features.size()) {
  for (const std::size_t f : group.features) {
    SATRAP_CHECK(f < layout.features.size(), "feature ", f, " of ", layout.features.size());
    const PlacedFeature& feature = layout.features[f];
    SATRAP_CHECK(feature.vector_width == group.layout.padded_dim &&
                     feature.column % FeatureLayout::kDeviceColumns == 0,
                 "feature '", feature.spec.name, "' has vectors of ", feature.vector_width,
                 " columns from column ", feature.column, " on; rows on a device have ",
                 group.layout.padded_dim);
  }
}

const PlacedFeature& GroupBatch::feature(std::int64_t f) const {
  return layout_.features[group_.features[index(f)]];
}

void GroupBatch::fill(const data::Batch& batch, std::int64_t row_stride) {
  SATRAP_CHECK(
      row_stride >= layout_.output_width && row_stride % FeatureLayout::kDeviceColumns == 0,
      "rows of ", row_stride, " elements for ", layout_.output_width, " embedding columns");
  check_batch(batch, layout_, row_stride);
  measure(batch, row_stride);
  backend::make_room(host_, device_, backend::Place::kPinnedHost, parts_in(nullptr).bytes,
                     "a batch of ids");
  fill_features();
  const std::int64_t num_pieces = (num_examples_ + kExamplesPerPiece - 1) / kExamplesPerPiece;
  pool_.parallel_for(num_features() * num_pieces, [&](std::int64_t unit) {
    const std::int64_t begin = unit % num_pieces * kExamplesPerPiece;
    fill_examples(batch, unit / num_pieces, begin,
                  std::min(num_examples_, begin + kExamplesPerPiece));
  });
}

void GroupBatch::fill(std::span<const Key> keys) {
  SATRAP_CHECK(keys.size() <= index(std::numeric_limits<std::int32_t>::max()),
               "too many keys: ", keys.size());
  is_of_keys_ = true;
  is_weighted_ = false;
  long_bags_.clear();
  num_examples_ = num_ids_ = std::ssize(keys);
  row_stride_ = group_.layout.padded_dim;
  backend::make_room(host_, device_, backend::Place::kPinnedHost, parts_in(nullptr).bytes,
                     "a batch of ids");
  const Parts host = parts_in(host_.data());
  host.features[0] = {
      .first_vector = 0, .column = 0, .pooling = Pooling::kSum, .vectors_per_row = 1};
  std::ranges::copy(keys, host.keys);
  std::iota(host.offsets, host.offsets + num_ids_ + 1, std::int64_t{0});
}

void GroupBatch::measure(const data::Batch& batch, std::int64_t row_stride) {
  is_of_keys_ = false;
  num_examples_ = batch.num_examples;
  row_stride_ = row_stride;
  is_weighted_ = !batch.id_weights.empty();
  num_ids_ = 0;
  for (std::int64_t f = 0; f < num_features(); ++f) {
    const std::int64_t* const offsets = offsets_of(batch, group_.features[index(f)]);
    first_ids_[index(f)] = num_ids_;
    num_ids_ += offsets[num_examples_] - offsets[0];
  }
  list_long_bags(batch);
}

void GroupBatch::list_long_bags(const data::Batch& batch) {
  long_bags_.clear();
  for (std::int64_t f = 0; f < num_features(); ++f) {
    const std::int64_t* const offsets = offsets_of(batch, group_.features[index(f)]);
    if (!has_long_bag(offsets, num_examples_)) continue;
    for (std::int64_t r = 0; r < num_examples_; ++r) {
      if (!is_long(offsets[r + 1] - offsets[r])) continue;
      long_bags_.push_back(static_cast<std::int32_t>(f * num_examples_ + r));
    }
  }
}

void GroupBatch::exchange(GroupBatch& other) noexcept {
  std::swap(num_ids_, other.num_ids_);
  std::swap(num_examples_, other.num_examples_);
  std::swap(row_stride_, other.row_stride_);
  std::swap(is_weighted_, other.is_weighted_);
  std::swap(is_of_keys_, other.is_of_keys_);
  std::swap(first_ids_, other.first_ids_);
  std::swap(long_bags_, other.long_bags_);
  std::swap(host_, other.host_);
}

GroupBatch::Parts GroupBatch::parts_in(std::byte* memory) const {
  Parts parts{};
  const auto take = [&]<class T>(T*& part, std::int64_t count) {
    if (memory != nullptr) part = reinterpret_cast<T*>(memory + parts.bytes);
    parts.bytes += count * static_cast<std::int64_t>(sizeof(T));
    static_assert(alignof(T) <= 8);
  };
  // Arrays of 8-byte elements come first, so that each is aligned.
  take(parts.keys, num_ids_);
  take(parts.offsets, num_features() * num_examples_ + 1);
  take(parts.features, num_features());
  if (is_weighted_) take(parts.weights, num_ids_);
  take(parts.long_bags, std::ssize(long_bags_));
  return parts;
}

void GroupBatch::fill_features() {
  const Parts host = parts_in(host_.data());
  std::int64_t first_vector = 0;
  for (std::int64_t f = 0; f < num_features(); ++f) {
    const PlacedFeature& placed = feature(f);
    host.features[f] = {.first_vector = first_vector,
                        .column = placed.column,
                        .pooling = placed.spec.pooling,
                        .vectors_per_row = static_cast<std::int32_t>(placed.spec.max_length)};
    first_vector += num_examples_ * placed.spec.max_length;
  }
  host.offsets[num_features() * num_examples_] = num_ids_;
  std::ranges::copy(long_bags_, host.long_bags);
}

void GroupBatch::fill_examples(const data::Batch& batch,
                               std::int64_t f,
                               std::int64_t begin,
                               std::int64_t end) {
  const Parts host = parts_in(host_.data());
  const std::int64_t* const offsets = offsets_of(batch, group_.features[index(f)]);
  const std::int64_t shift = first_ids_[index(f)] - offsets[0];
  for (std::int64_t r = begin; r < end; ++r) {
    host.offsets[f * num_examples_ + r] = offsets[r] + shift;
  }
  const TableId table = feature(f).spec.table;
  make_keys(
      table,
      std::span(batch.ids).subspan(index(offsets[begin]), index(offsets[end] - offsets[begin])),
      host.keys + offsets[begin] + shift);
  if (!is_weighted_) return;
  std::copy(batch.id_weights.begin() + offsets[begin], batch.id_weights.begin() + offsets[end],
            host.weights + offsets[begin] + shift);
}

std::span<const Key> GroupBatch::keys() const {
  return {parts_in(host_.data()).keys, index(num_ids_)};
}

std::int64_t GroupBatch::count_keys() const {
  std::vector<Key> sorted(keys().begin(), keys().end());
  std::ranges::sort(sorted);
  return std::ranges::unique(sorted).begin() - sorted.begin();
}

void GroupBatch::upload(backend::StreamRef stream) {
  const std::int64_t bytes = parts_in(nullptr).bytes;
  backend::make_room(device_memory_, device_, backend::Place::kDevice, bytes, "a batch of ids");
  device_.copy(device_memory_.data(), host_.data(), bytes, stream);
}

backend::Bags GroupBatch::bags() const {
  const Parts parts = parts_in(device_memory_.data());
  std::int64_t vectors_per_row = is_of_keys_ ? 1 : 0;
  for (std::int64_t f = 0; !is_of_keys_ && f < num_features(); ++f)
    vectors_per_row += feature(f).spec.max_length;
  return {.keys = parts.keys,
          .offsets = parts.offsets,
          .weights = parts.weights,
          .features = parts.features,
          .long_bags = parts.long_bags,
          .num_ids = num_ids_,
          .num_examples = num_examples_,
          .num_features = num_features(),
          .num_vectors = vectors_per_row * num_examples_,
          .num_long_bags = std::ssize(long_bags_),
          .row_stride = row_stride_};
}

}  // namespace satrap::embedding
