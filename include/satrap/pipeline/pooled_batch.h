#pragma once

#include <vector>

#include "satrap/core/float_matrix.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/feature_layout.h"

namespace satrap::pipeline {

/// What the dense network reads of a batch: its numbers with the masks of its sequences, and its
/// pooled rows. Reused from step to step without allocating. One thread at a time.
class PooledBatch {
 public:
  /// Makes room for what BatchRows::pool writes, pooled() and mask(), whose values are undefined
  /// until then. `batch` outlives the use of numeric().
  void begin(const data::Batch& batch, const embedding::FeatureLayout& layout);

  FloatMatrix pooled() { return pooled_.view(); }  // [num_examples, output_width]
  ConstFloatMatrix pooled() const { return pooled_.view(); }
  FloatMatrix mask();  // [num_examples, mask_width], part of numeric()

  /// The batch's own numbers where there are no sequences.
  ConstFloatMatrix numeric() const;  // [num_examples, num_numeric + mask_width]

  /// Copies without padding, and back: what a checkpoint keeps of a lookup. After begin() with the
  /// same batch; throws Error(kInternal) if the sizes are others.
  std::vector<float> pooled_values() const { return pooled_.values(); }
  std::vector<float> mask_values() const;
  void restore(const std::vector<float>& pooled, const std::vector<float>& mask);

 private:
  const data::Batch* batch_ = nullptr;
  std::int64_t mask_width_ = 0;
  HostMatrix pooled_;
  HostMatrix numeric_;  // without rows if there are no sequences
};

}  // namespace satrap::pipeline
