#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "satrap/core/half.h"
#include "satrap/dense/precision.h"
#include "satrap/job/model_config.h"
#include "satrap/kernels/dense_update.h"
#include "src/dense/matrix.h"

namespace satrap::dense {

/// What satrap takes from libtorch. Loading libtorch takes a third of a second, and training in
/// fp32 and most commands need none of it, so it is in a shared library of its own, which
/// libtorch() below opens when it is first needed. The two sides share only this header.
///
/// Everything computes on the calling thread alone and may be called by several threads, except for
/// a Replica. What libtorch refuses is a std::runtime_error with its message; the logits of a
/// module that are no fp32 numbers or too many or few, a std::range_error.
class Libtorch;

/// A module, of a user or of a model's Script. That of a user,
/// torch.jit.save(torch.jit.script(...)), in evaluation mode: forward(numeric, pooled) returns the
/// logits in fp32, [rows] or [rows, 1], with several outputs [rows, outputs]. Its parameters are
/// trained unless they are frozen (requires_grad False); frozen ones and its buffers do not change.
class ScriptModule {
 public:
  struct Parameter {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };

  /// A copy of the module that computes with parameters in the caller's memory. Used by one thread.
  class Replica {
   public:
    virtual ~Replica() = default;
    /// numeric [rows, num_numeric] and pooled [rows, pooled_width] to logits [rows, outputs]. With
    /// `training` the graph is kept for backward, which reads numeric and pooled again.
    virtual void forward(ConstMatrix numeric, ConstMatrix pooled, bool training, Matrix logits) = 0;
    /// Sets, or with `accumulate` adds to, the gradient of each parameter; sets that of `pooled`.
    virtual void backward(ConstMatrix dlogits,
                          std::span<const Matrix> gradients,
                          bool accumulate,
                          Matrix dpooled) = 0;
  };

  virtual ~ScriptModule() = default;

  /// The parameters that are trained.
  virtual std::vector<Parameter> parameters() const = 0;
  /// Runs forward and backward on two examples and on one, so that a module that cannot be trained
  /// is refused at the start.
  virtual void try_out(std::int64_t num_numeric, std::int64_t pooled_width) const = 0;
  /// `parameters`, one for each of parameters(), must outlive the replica. It has copies of the
  /// module's buffers.
  virtual std::unique_ptr<Replica> replicate(std::span<const ConstMatrix> parameters) const = 0;
};

/// A module to be written in the format of torch.jit.save.
struct ScriptFile {
  struct Value {
    std::string name;
    std::vector<std::int64_t> shape;
    const float* values;
  };
  std::string source;  // of its methods, in Python
  /// Its attributes; or, with a user's module, what takes the place of that one's parameters.
  std::vector<Value> parameters, buffers;
  std::shared_ptr<const ScriptModule> module;  // becomes its attribute `module`, unless null
};

/// A network in the memory of a device, computed by libtorch: the graph of a model in training form
/// under autograd, and in evaluation form. All calls but the constructor's queue kernels on the
/// stream that they name, or compute at once where tensors are the host's. They keep no reference
/// to a batch.
class TensorNetwork {
 public:
  /// fp32, flat, in the order of the model's parameters and buffers.
  struct Memory {
    float* parameters = nullptr;    // [num_parameters]
    float* buffers = nullptr;       // [num_buffer_values]
    float* next_buffers = nullptr;  // what they become if the step is applied
    float* flag = nullptr;          // [2] as DenseNetwork::flag_and_first_bucket
    float* gradient = nullptr;      // [num_parameters]
    float* first = nullptr;         // [num_parameters] of the optimizer, if it uses them
    float* second = nullptr;
    float* num_updates = nullptr;    // [1]
    float* learning_rate = nullptr;  // [1] of the next update
    float* loss_scale = nullptr;     // [LossScaleRule::kNumParts], with fp16
    std::int64_t num_parameters = 0, num_buffer_values = 0;
  };

  struct Batch {
    ConstMatrix numeric;         // [rows, num_numeric]
    ConstMatrix pooled;          // [rows, pooled_width]
    ConstMatrix labels;          // [rows, num_labels]
    ConstMatrix weights;         // the same, of losses; without a place those of labels
    ConstMatrix factors;         // [rows, num_factors] of all dropouts
    Matrix probabilities;        // [rows, num_outputs]
    Matrix grad_pooled;          // [rows, pooled_width]
    float loss_examples = 1.0F;  // the gradients are of the mean over these
    double* result = nullptr;    // [2] mean loss, norm of the gradient
  };

  virtual ~TensorNetwork() = default;

  /// Sets the outputs of the batch, the gradient, the flag and next_buffers.
  virtual void forward_backward(const Batch& batch, void* stream) = 0;

  /// One update by the gradient, clipped, at the learning rate in memory, unless the flag is set.
  virtual void apply(void* stream) = 0;

  /// What the calls in between queue on `stream` is recorded, to run again: their intermediate
  /// results take memory that is for recordings alone, and stays. One recording runs at a time.
  virtual void begin_recording(void* stream) = 0;
  virtual void end_recording() noexcept = 0;

  virtual void predict(ConstMatrix numeric,
                       ConstMatrix pooled,
                       Matrix probabilities,
                       void* stream) = 0;
};

class Libtorch {
 public:
  virtual ~Libtorch() = default;

  /// Version, BLAS, CPU capability and folder.
  virtual std::string describe() const = 0;

  /// A matrix without gaps between its rows.
  struct Operand {
    const Bf16* values;
    std::int64_t rows, cols;
    bool transposed;  // in the product
  };
  /// product = a b; sums are fp32, the product is rounded once.
  virtual void multiply(const Operand& a, const Operand& b, Bf16* product) const = 0;

  virtual std::unique_ptr<ScriptModule> load(const std::string& path,
                                             std::int64_t num_outputs) const = 0;
  /// The module that the file would have.
  virtual std::unique_ptr<ScriptModule> compile(const ScriptFile& file,
                                                std::int64_t num_outputs) const = 0;
  /// The file's bytes.
  virtual std::string save(const ScriptFile& file) const = 0;

  struct TensorNetworkParts {
    ScriptFile training, evaluation;   // of the same parameters and buffers
    std::vector<float> label_weights;  // these four as InputShape's
    std::vector<job::Loss> losses;
    std::int64_t num_classes = 0;
    float loss_shift = 0.0F;
    std::int64_t num_outputs() const {
      return num_classes > 0 ? num_classes : static_cast<std::int64_t>(label_weights.size());
    }
    DenseOptimizer optimizer;
    double clip_norm = 0.0;  // 0: the gradient is not clipped
    Precision precision = Precision::kFp32;
    int gpu = -1;  // that has the memory; -1: it is the host's
    TensorNetwork::Memory memory;
  };
  virtual std::unique_ptr<TensorNetwork> make_network(const TensorNetworkParts& parts) const = 0;
};

/// Opens the library on the first call, which takes a third of a second; it stays open. Throws
/// Error(kUnavailable) if it cannot be opened.
const Libtorch& libtorch();

/// The same with libtorch's CUDA kernels, another library, which a build with CUDA has.
const Libtorch& libtorch_for_cuda();

}  // namespace satrap::dense
