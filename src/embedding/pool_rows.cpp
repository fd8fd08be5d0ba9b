#include "src/embedding/pool_rows.h"

#include <algorithm>

#include "satrap/kernels/pool.h"
#include "src/embedding/check_batch.h"

namespace satrap::embedding {
namespace {

constexpr std::int64_t kExamplesPerBlock = 512;  // the unit of work

/// Examples [begin, end) of the batch.
struct Block {
  std::int64_t begin, end;
};

/// The mask of a sequence in some examples.
void mask_sequences(const PlacedFeature& feature,
                    const std::int64_t* offsets,
                    Block block,
                    float* mask,
                    std::int64_t mask_stride) {
  const std::int64_t max_length = feature.spec.max_length;
  for (std::int64_t r = block.begin; r < block.end; ++r) {
    const std::int64_t length = std::min(offsets[r + 1] - offsets[r], max_length);
    float* const row_mask = mask + r * mask_stride + feature.mask_column;
    std::fill_n(row_mask, length, 1.0F);
    std::fill_n(row_mask + length, max_length - length, 0.0F);
  }
}

void pool_block(const GatherSource& source,
                const FeatureLayout& layout,
                const data::Batch& batch,
                std::size_t feature_number,
                Block block,
                const PooledOutput& out) {
  const PlacedFeature& feature = layout.features[feature_number];
  const std::int64_t* offsets = offsets_of(batch, feature_number);
  with_float_type(feature.weights, [&]<class Weight>(std::type_identity<Weight>) {
    with_dim(feature.dim, [&](auto dim) {
      float* const to = out.pooled + block.begin * out.pooled_stride + feature.column;
      const std::int64_t count = block.end - block.begin;
      if (feature.spec.pooling == Pooling::kSequence) {
        pool_sequences<Weight>(source, offsets + block.begin, count, feature.spec.max_length, to,
                               out.pooled_stride, dim);
        mask_sequences(feature, offsets, block, out.mask, out.mask_stride);
      } else {
        pool_bags<Weight>(source, offsets + block.begin, count, to, out.pooled_stride, dim);
      }
    });
  });
}

}  // namespace

void pool_rows(const FeatureLayout& layout,
               const BatchPlan& plan,
               const data::Batch& batch,
               const std::byte* const* rows,
               std::int64_t weights_offset,
               const PooledOutput& out,
               ThreadPool& pool) {
  const GatherSource source{rows, weights_offset, plan.unique_of.data(), plan.coefficient.data()};
  const std::int64_t num_blocks = (plan.num_examples + kExamplesPerBlock - 1) / kExamplesPerBlock;
  const auto num_features = std::ssize(layout.features);
  // Feature by feature, so that a row used by several examples is in a cache the second time.
  pool.parallel_for(num_features * num_blocks, [&](std::int64_t unit) {
    const std::int64_t begin = unit % num_blocks * kExamplesPerBlock;
    const Block block{begin, std::min(plan.num_examples, begin + kExamplesPerBlock)};
    pool_block(source, layout, batch, static_cast<std::size_t>(unit / num_blocks), block, out);
  });
}

void write_mask(const FeatureLayout& layout,
                const data::Batch& batch,
                float* mask,
                std::int64_t mask_stride) {
  for (std::size_t f = 0; f < layout.features.size(); ++f) {
    const PlacedFeature& feature = layout.features[f];
    if (feature.spec.pooling != Pooling::kSequence) continue;
    mask_sequences(feature, offsets_of(batch, f), {0, batch.num_examples}, mask, mask_stride);
  }
}

}  // namespace satrap::embedding
