#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "satrap/dense/dense_network.h"
#include "src/dense/aligned_buffer.h"
#include "src/dense/optimizer.h"
#include "src/dense/parameters.h"

namespace satrap::dense {

/// What training changes of a network, in the host's memory: parameters, running statistics and the
/// optimizer's state, and the loss scale.
class DenseState {
 public:
  /// `layout` is complete and outlives it. Parameters are initialised from `seed` alone.
  DenseState(const Layout& layout,
             const job::DenseOptimizerConfig& optimizer,
             std::uint64_t seed,
             Precision precision = Precision::kFp32);

  AlignedBuffer parameters, buffers;
  Optimizer optimizer;
  AlignedBuffer loss_scale;  // [LossScaleRule::kNumParts], with fp16

  // As the functions of DenseNetwork.
  DenseNetwork::State save();
  void load(const DenseNetwork::State& state);
  DenseNetwork::TrainingState save_training_state();
  void load_training_state(const DenseNetwork::TrainingState& state);
  void load_parameters(std::span<const float> values);
  /// The constant part of every logit: [num_outputs].
  void set_output_constants(std::span<const double> constants);

 private:
  // The parts of the state, in their order.
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::span<float> values;
  };
  std::vector<Tensor> tensors();

  const Layout& layout_;
};

}  // namespace satrap::dense
