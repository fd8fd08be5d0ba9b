#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/core/thread_pool.h"
#include "satrap/dense/dense_network.h"

namespace satrap::dense {

/// One call of an ExternalNetwork, for the program that computes it. The matrices are the
/// network's, and may be used until the call is answered.
struct NetworkCall {
  enum class Kind : std::uint8_t { kMake, kStep, kApply, kForget, kPredict, kSave, kLoad, kExport };

  Kind kind = Kind::kStep;
  DenseInput input = {};            // kStep, kPredict; of kApply the step
  FloatMatrix probabilities = {};   // kStep, kPredict: to be written; kStep may leave the NaN in it
  FloatMatrix grad_pooled = {};     // kStep: zeros, to which the gradient is added
  DenseResult result = {};          // kStep: to be set; kApply: the norm
  std::string state = {};           // kSave, kExport: to be set; kLoad: what a kSave gave
  std::int64_t num_parameters = 0;  // kMake, before all others: to be set
  const char* format = "";          // kExport: "onnx", "pt2" or "safetensors"
};

/// Passes the calls of a network from the thread that trains it to the thread of a program that
/// computes it, one at a time. Does not own the calls.
class NetworkCalls {
 public:
  // The thread that trains.
  /// Blocks until the call is answered. Throws StepDeclined for a step that is declined, and
  /// Error(kInternal) once the program has failed.
  void make(NetworkCall& call);
  void end();  // no call will come any more

  // The program. One thread at a time waits and answers; the others are for any thread.
  /// The call that is to be answered; nullptr if there is none by `time`, or none will come.
  NetworkCall* wait_until(std::chrono::steady_clock::time_point time);
  void answer();  // the call that wait_until has returned
  bool has_ended() const;

  /// No step will be computed any more, also not the one that was being computed. All other calls
  /// still come: the run ends in order, before that step.
  void decline_steps();

  /// No call will be answered any more: the run ends with an error that says `why`.
  void fail(const std::string& why);

 private:
  void throw_if_refused(NetworkCall::Kind kind) const SATRAP_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  NetworkCall* call_ SATRAP_GUARDED_BY(mutex_) = nullptr;  // not answered yet
  bool is_declined_ SATRAP_GUARDED_BY(mutex_) = false;
  bool has_ended_ SATRAP_GUARDED_BY(mutex_) = false;
  std::optional<std::string> failure_ SATRAP_GUARDED_BY(mutex_);
};

/// A dense network that a program computes on a thread of its own, with its own loss and optimizer,
/// on the host. What ranks sum, the gradient and what else the program puts there, is memory of the
/// program. Its state is a text of bytes that only the program understands. What concerns
/// parameters, which only the program has, throws Error(kInternal); to_torchscript() throws
/// Error(kInvalidConfig).
class ExternalNetwork final : public DenseNetwork {
 public:
  static constexpr const char* kStateTensor = "external.state";

  /// `summed`: kFlagFloats floats, then what the program writes in a kStep, also one without
  /// examples, and finds summed over the ranks in its kApply. `calls`, `summed` and `pool` outlive
  /// it.
  ExternalNetwork(NetworkCalls& calls,
                  const InputShape& shape,
                  std::int64_t num_parameters,
                  std::span<float> summed,
                  ThreadPool& pool);

  void forward_backward(const DenseInput& input,
                        const DenseOutput& output,
                        const OnGradient& on_gradient) override;
  DenseResult finish() override { return result_; }
  void copy_flag(float* to, Place place) override;
  void apply(std::int64_t step) override;
  void forget_step() override;
  void predict(const DenseInput& input, const FloatMatrix& probabilities) override;

  /// The program may look at a batch until the next step is done.
  std::int64_t num_kept_batches() const override { return 1; }
  bool has_own_loss() const override { return true; }

  State save() override;
  void load(const State& state) override;
  bool has_fixed_state() const override { return false; }

  std::int64_t num_parameters() const override { return num_parameters_; }
  std::int64_t num_outputs() const override { return num_outputs_; }
  std::span<float> gradient() override { return summed_.subspan(kFlagFloats); }
  std::span<float> flag_and_first_bucket() override;
  void set_base_rates(std::span<const double>) override {}  // the program's network stays as it is
  TrainingState save_training_state() override;
  void load_training_state(const TrainingState& state) override;
  void load_parameters(std::span<const float> parameters) override;
  float gradient_scale() override;
  double learning_rate(std::int64_t step) const override;
  std::string to_torchscript() override;
  std::string to_onnx() override { return exported("onnx"); }
  std::string to_pt2() override { return exported("pt2"); }
  std::string to_safetensors() override { return exported("safetensors"); }

 private:
  void fill_zeros(const FloatMatrix& gradient, std::int64_t rows);
  bool is_finite(const FloatMatrix& gradient, std::int64_t rows);
  std::string exported(const char* format);

  NetworkCalls& calls_;
  const std::int64_t num_outputs_, pooled_width_, num_parameters_;
  ThreadPool& pool_;
  const std::span<float> summed_;
  std::vector<std::uint8_t> is_finite_;  // of each piece of the gradient
  DenseResult result_;
};

}  // namespace satrap::dense
