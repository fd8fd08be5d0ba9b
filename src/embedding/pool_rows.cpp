#include "src/embedding/pool_rows.h"

#include <algorithm>

#include "satrap/kernels/pool.h"

namespace satrap::embedding {
namespace {

constexpr std::int64_t kExamplesPerBlock = 512;  // the unit of work

/// Examples [begin, end) of the batch.
struct Block {
  std::int64_t begin, end;
};

template <class Weight, class Dim>
void pool_sequences(const GatherSource& source,
                    const PlacedFeature& feature,
                    const std::int64_t* offsets,
                    Block block,
                    const PooledOutput& out,
                    Dim dim) {
  const std::int64_t max_length = feature.spec.max_length;
  for (std::int64_t r = block.begin; r < block.end; ++r) {
    const std::int64_t length = std::min(offsets[r + 1] - offsets[r], max_length);
    float* row_out = out.pooled + r * out.pooled_stride + feature.column;
    // Each element is a bag of one id.
    scale_rows<Weight>(source, offsets[r], length, row_out, dim);
    std::fill(row_out + length * dim, row_out + feature.width, 0.0F);
    float* row_mask = out.mask + r * out.mask_stride + feature.mask_column;
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
  const std::int64_t* offsets =
      batch.offsets.data() + static_cast<std::int64_t>(feature_number) * batch.num_examples;
  with_float_type(feature.weights, [&]<class Weight>(std::type_identity<Weight>) {
    with_dim(feature.dim, [&](auto dim) {
      if (feature.spec.pooling == Pooling::kSequence) {
        pool_sequences<Weight>(source, feature, offsets, block, out, dim);
      } else {
        pool_bags<Weight>(source, offsets + block.begin, block.end - block.begin,
                          out.pooled + block.begin * out.pooled_stride + feature.column,
                          out.pooled_stride, dim);
      }
    });
  });
}

}  // namespace

void pool_rows(const FeatureLayout& layout,
               const Plan& plan,
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

}  // namespace satrap::embedding
