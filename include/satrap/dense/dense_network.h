#pragma once

#include <cstdint>
#include <exception>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "satrap/backend/stream_times.h"
#include "satrap/core/float_matrix.h"
#include "satrap/core/thread_pool.h"
#include "satrap/dense/gradient_source.h"
#include "satrap/dense/precision.h"
#include "satrap/dense/savable.h"
#include "satrap/job/model_config.h"

namespace satrap::dense {

/// Shapes that the network is built for. A field is one vector of the pooled embeddings (a sequence
/// of length L gives L fields).
struct InputShape {
  std::int64_t num_numeric = 0;  // columns of the numeric input, sequence masks included
  std::vector<std::int64_t>
      field_widths;  // of the pooled input, in order; first-order weight included
  // The feature of each field; or empty. Messages use the names, and `din` finds its inputs by
  // them.
  std::vector<std::string> field_names = {};

  struct Sequence {
    std::int64_t first_field = 0;
    std::int64_t length = 0;       // in fields
    std::int64_t mask_column = 0;  // in the numeric input, `length` columns
  };
  std::vector<Sequence> sequences = {};

  std::vector<float> label_weights = {1.0F};  // [num_labels] factor of each label's loss
  std::vector<job::Loss> losses = {};  // [num_labels], none of them kAuto; empty: kBce of all
  std::int64_t num_classes = 0;        // of the only label, whose loss is kSoftmax; 0: none
  float loss_shift = 0.0F;  // added to the logits for the loss alone: examples are of another
                            // distribution than those that are predicted

  /// The first column of each field in pooled rows in a device's memory, and how many columns those
  /// have; without, fields are side by side as in the host's. Columns of no field are zero.
  std::vector<std::int64_t> device_columns = {};
  std::int64_t device_width = 0;

  std::int64_t pooled_width() const;
  std::int64_t num_labels() const { return static_cast<std::int64_t>(label_weights.size()); }
  /// One for each label, or for each class.
  std::int64_t num_outputs() const { return num_classes > 0 ? num_classes : num_labels(); }
};

/// Throws Error(kInvalidConfig) if the model cannot take these shapes, saying why.
void check_model(const job::ModelConfig& model, const InputShape& shape);

/// A network computes here: in memory of `device`, in the order of `stream`. Both outlive it.
struct DensePlace {
  backend::Device& device;
  const backend::Stream& stream;
  backend::StreamTimes* times = nullptr;  // gets the network's, unless null
};

/// One batch for the dense network: matrices of fp32, borrowed for the call; those in a device's
/// memory, of which only a network on that device takes any, until finish() has returned.
struct DenseInput {
  std::int64_t num_examples = 0;
  ConstFloatMatrix numeric;  // [num_examples, num_numeric]
  ConstFloatMatrix pooled;   // [num_examples, pooled_width], or device_width in a device's memory
  ConstFloatMatrix labels;   // [num_examples, num_labels]: numbers with kMse, numbers of classes
                             // with kSoftmax, else in [0, 1]; predict does not read them
  std::int64_t step = 0;     // of training, from 1; selects the dropout mask

  /// [num_examples, num_labels] factor of each loss, finite; where it is 0 the label may be NaN.
  /// Without values: InputShape::label_weights for each example.
  ConstFloatMatrix weights = {};

  // For a batch that is one rank's share of a global batch:
  std::int64_t loss_examples = 0;  // the gradients are of the mean loss over these; 0: num_examples
  std::int64_t first_example = 0;  // its number in the global batch, for the dropout mask
};

/// Outputs of forward_backward, borrowed until finish() has returned.
struct DenseOutput {
  FloatMatrix probabilities;  // [num_examples, num_outputs] what is predicted: probabilities, with
                              // kMse values; in the host's memory; set by finish()
  FloatMatrix grad_pooled;    // as DenseInput::pooled; set, or in a device's memory queued
};

/// Results of a step.
struct DenseResult {
  double loss = 0.0;        // mean over these examples
  double grad_norm = 0.0;   // L2 norm of the dense gradient, before clipping
  bool finite = true;       // the flag was not set: in apply() if it was called, else as computed
  bool overflowed = false;  // not finite because of the loss scale alone
};

/// Thrown by forward_backward where a program computes the network and computes this step no more:
/// it has changed nothing, and the run ends before it.
class StepDeclined : public std::exception {
 public:
  const char* what() const noexcept override { return "the step is declined"; }
};

/// The dense network with its optimizer. bf16 products, a user's module and to_torchscript() open
/// libtorch, which no header of satrap exposes; fp16 is for a network that it computes. The loss is
/// the sum of the examples' losses (src/dense/losses.h), of each label and each times its weight
/// (DenseInput::weights), divided by the number of examples.
///
/// A batch is computed in pieces of kPieceExamples, distributed over at most kMaxReplicas replicas
/// of the network that run in parallel on the pool, each on one thread; their gradients are added
/// in order. With batch normalisation the batch is one piece, and its matrix products are divided
/// among threads. Results therefore do not depend on the number of threads. Working memory is kept
/// and grows with the largest batch only. Calls come from one thread at a time, none of them inside
/// a loop of the pool.
///
/// A step is forward_backward, then any change of the gradient by the caller, then apply; finish()
/// returns the result. On a device forward_backward and apply only queue their work, and up to
/// max_in_flight() steps may follow each other before the first is finished; else they return when
/// it is done. What concerns the host's memory, as gradient() does, waits for what was queued.
///
/// What others sum, the gradient, and what they save are interfaces of their own.
class DenseNetwork : public GradientSource, public Savable {
 public:
  static constexpr std::int64_t kPieceExamples = 512;
  static constexpr std::int64_t kMaxReplicas = 16;  // each has a gradient of its own in memory

  /// Throws as check_model does. Parameters are initialised from `seed` alone: those of linear
  /// parts over numbers with 0, others as PyTorch's nn.Linear does.
  /// `place`: on which device libtorch computes the network; without, it is in the host's memory,
  /// and libtorch's with model.engine 'graph' alone.
  static std::unique_ptr<DenseNetwork> create(const job::ModelConfig& model,
                                              const job::DenseOptimizerConfig& optimizer,
                                              Precision precision,
                                              const InputShape& shape,
                                              std::uint64_t seed,
                                              ThreadPool& pool,
                                              const DensePlace* place = nullptr);

  /// Computes the gradients of this batch; that of the parameters is kept inside until apply(). If
  /// one of them is not finite, the outputs must not be used, and the flag is set. The
  /// running statistics of batch normalisation change in apply(). num_examples may be 0 if
  /// loss_examples is not: all gradients are then 0.
  virtual void forward_backward(const DenseInput& input,
                                const DenseOutput& output,
                                const OnGradient& on_gradient) = 0;
  void forward_backward(const DenseInput& input, const DenseOutput& output) {
    forward_backward(input, output, OnGradient());
  }

  /// Blocks until the oldest step is done whose result has not been taken. It is lost if more than
  /// max_in_flight() others follow.
  virtual DenseResult finish() = 0;
  virtual std::int64_t max_in_flight() const { return 1; }

  /// Batches whose inputs must stay as they are although finish() has returned.
  virtual std::int64_t num_kept_batches() const { return 0; }

  /// Whether DenseResult::loss is a function of its own, which metrics report in place of the
  /// cross-entropy of the predictions. The predictions of a step may then be NaN: it has none.
  virtual bool has_own_loss() const { return false; }

  /// Copies the flag, as it is now, to where the rows' updates read it: to memory of the host, or
  /// of the network's device in the order of its stream.
  virtual void copy_flag(float* to, Place place) = 0;

  /// Clips the gradient and applies the optimizer with the learning rate of `step` (from 1).
  /// Changes nothing if the flag is set.
  virtual void apply(std::int64_t step) = 0;

  /// In place of apply(), where another rank declines the step: the run ends before it.
  virtual void forget_step() {}

  /// For a network that has not been trained: it is to begin with these as its predictions, the
  /// labels' mean values or the shares of the classes; those that are probabilities lie between 0
  /// and 1. Sets the constant part of every logit (Losses::constants_of); a user's module stays as
  /// it is.
  virtual void set_base_rates(std::span<const double> rates) = 0;  // [num_outputs]

  /// With fp16, what the loss is multiplied by for the backward pass, so that small gradients are
  /// not lost: a number of the device that steps change without the host, and part of save(). How
  /// it changes: src/dense/loss_scale.h. Blocks until it has come.
  struct LossScale {
    double factor = 0.0;
    std::int64_t skipped_steps = 0;  // in all, those that overflowed
  };
  virtual std::optional<LossScale> loss_scale() { return std::nullopt; }

  /// Predictions in evaluation mode: [num_examples, num_outputs]. Blocks until they are computed.
  virtual void predict(const DenseInput& input, const FloatMatrix& probabilities) = 0;

  virtual std::int64_t num_parameters() const = 0;
  virtual std::int64_t num_outputs() const = 0;  // InputShape::num_outputs

  /// State of parameters that are trained elsewhere, with apply() there: copies of the flat
  /// parameters and of the optimizer's state per parameter (empty if it has none), in the order of
  /// gradient(), and the number of its updates (0 if it does not count them).
  struct TrainingState {
    std::vector<float> parameters, first, second;
    double num_updates = 0.0;
  };
  virtual TrainingState save_training_state() = 0;

  /// Vectors that this optimizer does not keep may have any size; their values are ignored.
  virtual void load_training_state(const TrainingState& state) = 0;
  virtual void load_parameters(std::span<const float> parameters) = 0;  // [num_parameters]

  /// The factor and the learning rate with which apply(step) would use the gradient.
  virtual float gradient_scale() = 0;
  virtual double learning_rate(std::int64_t step) const = 0;

  /// The network in evaluation mode as a TorchScript module, the bytes of a file for
  /// torch.jit.load: forward(numeric [n, num_numeric], pooled [n, pooled_width]) returns the logits
  /// [n], or [n, num_outputs] with several outputs, in fp32 whatever the precision of training;
  /// Losses::predict says what is predicted by them.
  virtual std::string to_torchscript() = 0;

  /// The same as ONNX, the bytes of a file: its inputs are `numeric` and `pooled`, its output is
  /// `logits`, [n, num_outputs]. Throws Error(kInvalidConfig) for a user's module and for a network
  /// of more than 2 GB, Error(kUnavailable) in a build without protobuf.
  virtual std::string to_onnx() = 0;

  /// For a network of a program alone, others throw Error(kInvalidConfig): the same as a program of
  /// torch.export, the bytes of a file .pt2; and its parameters and buffers as SafeTensors.
  virtual std::string to_pt2();
  virtual std::string to_safetensors();
};

/// One line for `satrap doctor`: version, BLAS, CPU capability, folder of libtorch.
std::string describe_libtorch();

/// The same for what writes ONNX. Throws Error(kUnavailable) if it is not there.
std::string describe_onnx();

/// The same for what computes a network on a GPU. Throws Error(kUnavailable) if it cannot be
/// opened.
std::string describe_libtorch_for_cuda();

}  // namespace satrap::dense
