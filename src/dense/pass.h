#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/dense/aligned_buffer.h"
#include "src/dense/gemm.h"
#include "src/dense/gradient_sum.h"
#include "src/dense/matrix.h"
#include "src/dense/parameters.h"

namespace satrap::dense {

/// The working memory of one pass of a model over up to `max_rows` rows, used by one thread: the
/// network's parameters (shared, only read), the pass's own gradients and scratch matrices. Reused
/// from step to step; a pass allocates nothing (except in a user's module).
class Pass {
 public:
  Pass(const Layout& layout,
       const float* parameters,
       const float* buffers,
       std::int64_t max_rows,
       Precision precision);

  /// Begins rows [first_example, first_example + num_examples) of a batch.
  struct Begin {
    std::int64_t first_example = 0;
    std::int64_t num_examples = 0;
    bool training = false;
    bool accumulate = false;         // gradients are added to those of the rows before
    std::uint64_t dropout_seed = 0;  // of the step
    // Is told which gradients are final, unless null: those of the last examples of `replica`.
    GradientSum* sum = nullptr;
    std::int64_t replica = 0;
  };
  void begin(const Begin& begin);

  std::int64_t rows() const { return begin_.num_examples; }
  std::int64_t first_example() const { return begin_.first_example; }
  bool training() const { return begin_.training; }
  bool accumulate() const { return begin_.accumulate; }
  std::uint64_t dropout_seed() const { return begin_.dropout_seed; }

  ConstMatrix value(ParameterId id) const;  // [shape[0], shape[1]], or [1, size] for a vector
  Matrix gradient(ParameterId id);          // likewise
  const float* buffer(BufferId id) const;   // as they were before the step
  float* new_buffer(BufferId id);           // what they become if the step is applied
  Matrix scratch(ScratchId id);             // [rows(), cols]

  /// State that the model keeps from call to call, empty at first.
  std::shared_ptr<void>& own() { return own_; }

  /// Called by a layer after its last write to this parameter's gradient in this pass.
  void finished(ParameterId id);

  const AlignedBuffer& gradients() const { return gradients_; }
  const AlignedBuffer& new_buffers() const { return new_buffers_; }
  Gemm& gemm() { return gemm_; }

 private:
  const Layout& layout_;
  const float* parameters_;
  const float* buffers_;
  AlignedBuffer gradients_, new_buffers_, scratch_;
  std::vector<std::int64_t> scratch_offset_;
  Gemm gemm_;
  std::shared_ptr<void> own_;
  Begin begin_;
  std::vector<bool> is_finished_;   // by parameter
  std::size_t first_finished_ = 0;  // all from here on are
};

}  // namespace satrap::dense
