#pragma once

#include <vector>

#include "satrap/backend/device_matrix.h"
#include "satrap/core/float_matrix.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/row_access.h"

namespace satrap::pipeline {

/// The input of the dense network: a batch's numbers with the masks of its sequences, in the
/// host's memory, and its pooled rows, there or in a device's. Reused from step to step without
/// allocating. One thread at a time.
class PooledBatch {
 public:
  /// Makes room for what BatchRows::pool writes, pooled() and mask(), whose values are undefined
  /// until then. `batch` outlives the use of numeric(). Pooled rows are in memory of `device`, with
  /// its columns, unless that is null; it and `layout` then outlive this object.
  void begin(const data::Batch& batch,
             const embedding::FeatureLayout& layout,
             const embedding::DeviceRows* device = nullptr);

  FloatMatrix pooled() { return device_ == nullptr ? pooled_.view() : on_device_.view(); }
  ConstFloatMatrix pooled() const {  // [num_examples, output_width]
    return device_ == nullptr ? pooled_.view() : ConstFloatMatrix(on_device_.view());
  }
  FloatMatrix mask();  // [num_examples, mask_width], part of numeric()

  /// The batch's own numbers where there are no sequences.
  ConstFloatMatrix numeric() const;  // [num_examples, num_numeric + mask_width]

  /// Copies without padding, in the host's columns, and back: what a checkpoint keeps of a lookup.
  /// After begin() with the same batch; throws Error(kInternal) if the sizes are others. Block
  /// until a device has done it.
  std::vector<float> pooled_values() const;
  std::vector<float> mask_values() const;
  void restore(const std::vector<float>& pooled, const std::vector<float>& mask);

 private:
  const data::Batch* batch_ = nullptr;
  const embedding::FeatureLayout* layout_ = nullptr;
  const embedding::DeviceRows* device_ = nullptr;
  std::int64_t host_width_ = 0, mask_width_ = 0;
  HostMatrix pooled_;
  backend::DeviceMatrix on_device_;
  HostMatrix numeric_;  // without rows if there are no sequences
};

}  // namespace satrap::pipeline
