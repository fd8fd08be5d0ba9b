#include "src/embedding/device_columns.h"

#include <algorithm>

namespace satrap::embedding {

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

}  // namespace satrap::embedding
