#include "src/embedding/pool_rows.h"

#include <algorithm>

#include "satrap/kernels/pool.h"

namespace satrap::embedding {
namespace {

constexpr std::int64_t kRowsPerBlock = 512;  // of the batch: the unit of work

/// Rows [begin, end) of the batch.
struct Block {
  std::int64_t begin, end;
};

template <class Weight, class Dim>
void pool_sequences(const GatherSource& source,
                    const FeatureLayout& layout,
                    const PlacedFeature& feature,
                    const std::int64_t* offsets,
                    Block block,
                    float* out,
                    float* mask,
                    Dim dim) {
  const std::int64_t max_length = feature.spec.max_length;
  for (std::int64_t r = block.begin; r < block.end; ++r) {
    const std::int64_t length = std::min(offsets[r + 1] - offsets[r], max_length);
    float* row_out = out + r * layout.output_width;
    // Each element is a bag of one id.
    scale_rows<Weight>(source, offsets[r], length, row_out, dim);
    std::fill(row_out + length * dim, row_out + feature.width, 0.0F);
    float* row_mask = mask + r * layout.mask_width + feature.mask_column;
    std::fill_n(row_mask, length, 1.0F);
    std::fill_n(row_mask + length, max_length - length, 0.0F);
  }
}

void pool_block(const GatherSource& source,
                const FeatureLayout& layout,
                const data::Batch& batch,
                std::size_t feature_number,
                Block block,
                float* pooled,
                float* mask) {
  const PlacedFeature& feature = layout.features[feature_number];
  const std::int64_t* offsets =
      batch.offsets.data() + static_cast<std::int64_t>(feature_number) * batch.num_examples;
  float* out = pooled + feature.column;
  with_float_type(feature.weights, [&]<class Weight>(std::type_identity<Weight>) {
    with_dim(feature.dim, [&](auto dim) {
      if (feature.spec.pooling == Pooling::kSequence) {
        pool_sequences<Weight>(source, layout, feature, offsets, block, out, mask, dim);
      } else {
        pool_bags<Weight>(source, offsets + block.begin, block.end - block.begin,
                          out + block.begin * layout.output_width, layout.output_width, dim);
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
               float* pooled,
               float* mask,
               ThreadPool& pool) {
  const GatherSource source{rows, weights_offset, plan.unique_of.data(), plan.coefficient.data()};
  const std::int64_t num_blocks = (plan.num_examples + kRowsPerBlock - 1) / kRowsPerBlock;
  const auto num_features = std::ssize(layout.features);
  // Feature by feature: a row that several examples want is then in a cache the second time.
  pool.parallel_for(num_features * num_blocks, [&](std::int64_t unit) {
    const std::int64_t begin = unit % num_blocks * kRowsPerBlock;
    const Block block{begin, std::min(plan.num_examples, begin + kRowsPerBlock)};
    pool_block(source, layout, batch, static_cast<std::size_t>(unit / num_blocks), block, pooled,
               mask);
  });
}

}  // namespace satrap::embedding
