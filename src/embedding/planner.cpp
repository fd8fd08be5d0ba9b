#include "satrap/embedding/planner.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "src/embedding/check_batch.h"
#include "src/embedding/coefficients.h"
#include "src/embedding/index.h"

namespace satrap::embedding {
namespace {

constexpr std::int64_t kItemsPerChunk = 8192;
constexpr std::int64_t kItemsPerBucket =
    8192;  // of 16 bytes: with its scratch in a second-level cache
constexpr int kPartitionShift = kIdBits - table::kPartitionBits;

std::size_t bucket_of(Key key, int bucket_bits) {
  return static_cast<std::size_t>(mixed_id_of(key) >> (kIdBits - bucket_bits));
}

}  // namespace

Planner::Planner(const FeatureLayout& layout, ThreadPool& pool) : layout_(layout), pool_(pool) {
  for (std::size_t f = 0; f < layout_.features.size(); ++f) {
    const auto table = static_cast<std::size_t>(layout_.features[f].spec.table);
    if (table >= features_of_table_.size()) features_of_table_.resize(table + 1);
    features_of_table_[table].push_back(f);
  }
}

void Planner::plan(const data::Batch& batch, BatchPlan& plan, const FindRows& find) {
  make_unique(batch, plan);
  pool_.parallel_for(std::ssize(buckets_), [&](std::int64_t b) {
    const Bucket& bucket = buckets_[index(b)];
    emit(bucket, plan);
    if (!find) return;
    const auto keys =
        std::span(plan.keys).subspan(index(bucket.unique_begin), index(bucket.counts.keys));
    find(bucket.table, keys, bucket.unique_begin);
  });
  make_update_units(plan);
}

void Planner::make_unique(const data::Batch& batch, BatchPlan& plan) {
  check_batch(batch, layout_, layout_.output_width);
  plan.num_examples = batch.num_examples;
  plan.unique_of.resize(batch.ids.size());
  plan.coefficient.resize(batch.ids.size());
  make_chunks(batch);
  pool_.parallel_for(std::ssize(chunks_),
                     [&](std::int64_t c) { make_items(batch, chunks_[index(c)], plan); });
  make_buckets();
  pool_.parallel_for(std::ssize(chunks_), [&](std::int64_t c) { scatter(chunks_[index(c)]); });
  pool_.parallel_for(std::ssize(buckets_), [&](std::int64_t b) {
    Bucket& bucket = buckets_[index(b)];
    sort_by_key(bucket.items, bucket.scratch);
    bucket.counts = count_distinct(bucket.items, kPartitionShift);
  });

  std::int64_t num_unique = 0, num_occurrences = 0, num_ranges = 0;
  for (Bucket& bucket : buckets_) {
    bucket.unique_begin = std::exchange(num_unique, num_unique + bucket.counts.keys);
    bucket.occurrence_begin =
        std::exchange(num_occurrences, num_occurrences + std::ssize(bucket.items));
    bucket.range_begin = std::exchange(num_ranges, num_ranges + bucket.counts.groups);
  }
  plan.keys.resize(index(num_unique));
  plan.segments.resize(index(num_unique + 1));
  plan.segments.back() = num_occurrences;
  plan.occurrences.resize(index(num_occurrences));
  plan.output_offset.resize(index(num_occurrences));
  plan.occurrence_coefficient.resize(index(num_occurrences));
  plan.ranges.resize(index(num_ranges));
}

void Planner::make_chunks(const data::Batch& batch) {
  chunks_.clear();
  first_chunk_of_table_.clear();
  std::int64_t num_items_so_far = 0;
  for (const std::vector<std::size_t>& features : features_of_table_) {
    first_chunk_of_table_.push_back(chunks_.size());
    const std::int64_t table_begin = num_items_so_far;
    for (const std::size_t f : features) {
      const std::int64_t* offsets =
          batch.offsets.data() + static_cast<std::int64_t>(f) * batch.num_examples;
      const std::int64_t num_ids = offsets[batch.num_examples] - offsets[0];
      if (num_ids == 0) continue;
      const std::int64_t num_chunks =
          std::min(batch.num_examples, (num_ids + kItemsPerChunk - 1) / kItemsPerChunk);
      for (std::int64_t c = 0; c < num_chunks; ++c) {
        Chunk& chunk = chunks_.emplace_back();
        chunk.feature = f;
        chunk.row_begin = batch.num_examples * c / num_chunks;
        chunk.row_end = batch.num_examples * (c + 1) / num_chunks;
        chunk.item_begin = num_items_so_far;
        num_items_so_far += num_items(batch, chunk);
      }
    }
    const std::int64_t table_items = num_items_so_far - table_begin;
    const int bucket_bits =
        std::min(kMaxBucketBits, static_cast<int>(std::bit_width(
                                     static_cast<std::uint64_t>(table_items / kItemsPerBucket))));
    for (std::size_t c = first_chunk_of_table_.back(); c < chunks_.size(); ++c) {
      chunks_[c].bucket_bits = bucket_bits;
    }
  }
  first_chunk_of_table_.push_back(chunks_.size());
  items_.resize(index(num_items_so_far));
  other_items_.resize(index(num_items_so_far));
}

std::int64_t Planner::num_items(const data::Batch& batch, const Chunk& chunk) const {
  const job::FeatureSpec& spec = layout_.features[chunk.feature].spec;
  const std::int64_t* offsets =
      batch.offsets.data() + static_cast<std::int64_t>(chunk.feature) * batch.num_examples;
  if (spec.pooling != Pooling::kSequence) return offsets[chunk.row_end] - offsets[chunk.row_begin];
  std::int64_t count = 0;
  for (std::int64_t r = chunk.row_begin; r < chunk.row_end; ++r) {
    count += std::min(offsets[r + 1] - offsets[r], spec.max_length);
  }
  return count;
}

void Planner::make_items(const data::Batch& batch, Chunk& chunk, BatchPlan& plan) {
  const PlacedFeature& feature = layout_.features[chunk.feature];
  const std::int64_t* offsets =
      batch.offsets.data() + static_cast<std::int64_t>(chunk.feature) * batch.num_examples;
  const float* weights = batch.id_weights.empty() ? nullptr : batch.id_weights.data();
  const bool sequence = feature.spec.pooling == Pooling::kSequence;
  const std::uint32_t step = sequence ? static_cast<std::uint32_t>(feature.vector_width) : 0;
  KeyOccurrence* item = items_.data() + chunk.item_begin;
  for (std::int64_t r = chunk.row_begin; r < chunk.row_end; ++r) {
    const std::int64_t begin = offsets[r];
    std::int64_t end = offsets[r + 1];
    if (sequence && end - begin > feature.spec.max_length) {
      const std::int64_t kept = begin + feature.spec.max_length;
      std::fill(plan.unique_of.begin() + kept, plan.unique_of.begin() + end, -1);
      std::fill(plan.coefficient.begin() + kept, plan.coefficient.begin() + end, 0.0F);
      end = kept;
    }
    auto offset = static_cast<std::uint32_t>(r * layout_.output_width + feature.column);
    for (std::int64_t i = begin; i < end; ++i, offset += step) {
      *item++ = {make_key(feature.spec.table, batch.ids[index(i)]), static_cast<std::uint32_t>(i),
                 offset};
    }
    fill_coefficients(feature.spec.pooling, weights == nullptr ? nullptr : weights + begin,
                      end - begin, plan.coefficient.data() + begin);
  }
  if (chunk.bucket_bits == 0) return;
  chunk.bucket_items.fill(0);
  for (const KeyOccurrence* i = items_.data() + chunk.item_begin; i != item; ++i) {
    ++chunk.bucket_items[bucket_of(i->key, chunk.bucket_bits)];
  }
}

void Planner::make_buckets() {
  buckets_.clear();
  for (std::size_t t = 0; t < features_of_table_.size(); ++t) {
    const std::size_t first = first_chunk_of_table_[t], last = first_chunk_of_table_[t + 1];
    if (first == last) continue;
    std::int64_t place = chunks_[first].item_begin;
    const auto add = [&](std::int64_t end, std::vector<KeyOccurrence>& in,
                         std::vector<KeyOccurrence>& scratch) {
      if (end == place) return;
      Bucket& bucket = buckets_.emplace_back();
      bucket.table = static_cast<TableId>(t);
      bucket.items = std::span(in).subspan(index(place), index(end - place));
      bucket.scratch = std::span(scratch).subspan(index(place), index(end - place));
      place = end;
    };
    const int bits = chunks_[first].bucket_bits;
    if (bits == 0) {
      add(last < chunks_.size() ? chunks_[last].item_begin : std::ssize(items_), items_,
          other_items_);
      continue;
    }
    for (std::size_t b = 0; b < std::size_t{1} << bits; ++b) {
      std::int64_t end = place;
      for (std::size_t c = first; c < last; ++c) {
        end += std::exchange(chunks_[c].bucket_items[b], end);
      }
      add(end, other_items_, items_);
    }
  }
}

void Planner::scatter(Chunk& chunk) {
  if (chunk.bucket_bits == 0) return;
  const auto number = static_cast<std::size_t>(&chunk - chunks_.data());
  const std::int64_t end =
      number + 1 < chunks_.size() ? chunks_[number + 1].item_begin : std::ssize(items_);
  for (std::int64_t i = chunk.item_begin; i < end; ++i) {
    const KeyOccurrence& item = items_[index(i)];
    other_items_[index(chunk.bucket_items[bucket_of(item.key, chunk.bucket_bits)]++)] = item;
  }
}

void Planner::emit(const Bucket& bucket, BatchPlan& plan) const {
  std::int64_t unique = bucket.unique_begin - 1;
  std::int64_t range = bucket.range_begin - 1;
  std::int64_t occurrence = bucket.occurrence_begin;
  std::uint64_t previous = ~static_cast<std::uint64_t>(bucket.items.front().key);
  for (const KeyOccurrence& item : bucket.items) {
    const auto key = static_cast<std::uint64_t>(item.key);
    if (key != previous) {
      ++unique;
      plan.keys[index(unique)] = item.key;
      plan.segments[index(unique)] = occurrence;
      if ((key ^ previous) >> kPartitionShift != 0) {
        ++range;
        plan.ranges[index(range)] = {bucket.table, table::partition_of(item.key), unique, unique};
      }
      plan.ranges[index(range)].end = unique + 1;
      previous = key;
    }
    plan.occurrences[index(occurrence)] = static_cast<std::int32_t>(item.position);
    plan.output_offset[index(occurrence)] = item.offset;
    plan.occurrence_coefficient[index(occurrence)] = plan.coefficient[item.position];
    plan.unique_of[item.position] = static_cast<std::int32_t>(unique);
    ++occurrence;
  }
}

void Planner::make_update_units(BatchPlan& plan) {
  // A row costs about as much as two occurrences. Few units keep the threads' overhead low, many
  // balance their load.
  constexpr std::int64_t kCostOfRow = 2, kUnits = 64, kMinCost = 1024;
  const std::int64_t total = plan.num_occurrences() + kCostOfRow * plan.num_unique();
  const std::int64_t cost_per_unit = std::max(kMinCost, total / kUnits);
  plan.update_units.assign(1, 0);
  std::int64_t cost = 0;
  for (std::size_t r = 0; r < plan.ranges.size(); ++r) {
    const BatchPlan::Range& range = plan.ranges[r];
    cost += plan.segments[index(range.end)] - plan.segments[index(range.begin)] +
            kCostOfRow * (range.end - range.begin);
    if (cost >= cost_per_unit || r + 1 == plan.ranges.size()) {
      plan.update_units.push_back(static_cast<std::int64_t>(r) + 1);
      cost = 0;
    }
  }
}

}  // namespace satrap::embedding
