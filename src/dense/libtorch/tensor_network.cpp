#include "src/dense/libtorch/tensor_network.h"

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/api/module.h>

#include "src/dense/libtorch/call_module.h"
#include "src/dense/libtorch/loss_scale.h"
#include "src/dense/libtorch/place.h"
#include "src/dense/libtorch/plain_errors.h"
#include "src/dense/libtorch/script_module.h"
#include "src/dense/libtorch/tensor_losses.h"

namespace satrap::dense {
namespace {

/// While it lives, products of the calling thread round to `to`, unless that is fp32. Weights are
/// rounded anew each time: hardly any is used twice in a pass.
class Autocast {
 public:
  Autocast(at::Device place, at::ScalarType to) : type_(place.type()), is_on_(to != at::kFloat) {
    if (!is_on_) return;
    at::autocast::set_autocast_enabled(type_, true);
    at::autocast::set_autocast_dtype(type_, to);
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~Autocast() {
    if (!is_on_) return;
    at::autocast::set_autocast_cache_enabled(true);
    at::autocast::set_autocast_enabled(type_, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const at::DeviceType type_;
  const bool is_on_;
};

at::ScalarType rounded_to(Precision precision) {
  if (precision == Precision::kBf16) return at::kBFloat16;
  return precision == Precision::kFp16 ? at::kHalf : at::kFloat;
}

/// The step of torch.optim's fused optimizers on flat parameters.
class FusedOptimizer {
 public:
  FusedOptimizer(const DenseOptimizer& optimizer,
                 const TensorNetwork::Memory& memory,
                 at::Device place)
      : optimizer_(optimizer),
        parameters_{tensor_at(place, memory.parameters, memory.num_parameters)},
        num_updates_{tensor_at(place, memory.num_updates, 1)},
        rate_(tensor_at(place, memory.learning_rate, 1)) {
    if (optimizer.uses_first()) {
      first_.push_back(tensor_at(place, memory.first, memory.num_parameters));
    }
    if (optimizer.uses_second()) {
      second_.push_back(tensor_at(place, memory.second, memory.num_parameters));
    }
  }

  /// `is_refused`: [1] 1 if nothing is to change, else 0.
  void apply(const at::Tensor& gradient, const at::Tensor& is_refused) {
    const std::vector<at::Tensor> gradients{gradient};
    const double decay = optimizer_.weight_decay;
    num_updates_[0].add_(1 - is_refused);
    switch (optimizer_.type) {
      case DenseOptimizerType::kSgd:
        return at::_fused_sgd_(parameters_, gradients, first_, decay, optimizer_.momentum, rate_,
                               /*dampening=*/0.0, /*nesterov=*/false, /*maximize=*/false,
                               /*is_first_step=*/false, /*grad_scale=*/{}, is_refused);
      case DenseOptimizerType::kAdagrad:
        return at::_fused_adagrad_(parameters_, gradients, second_, num_updates_, rate_,
                                   /*lr_decay=*/0.0, decay, optimizer_.eps, /*maximize=*/false,
                                   /*grad_scale=*/{}, is_refused);
      case DenseOptimizerType::kAdam:
        return at::_fused_adam_(parameters_, gradients, first_, second_, {}, num_updates_, rate_,
                                optimizer_.beta1, optimizer_.beta2, decay, optimizer_.eps,
                                /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/{},
                                is_refused);
      case DenseOptimizerType::kAdamW:
        return at::_fused_adamw_(parameters_, gradients, first_, second_, {}, num_updates_, rate_,
                                 optimizer_.beta1, optimizer_.beta2, decay, optimizer_.eps,
                                 /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/{},
                                 is_refused);
    }
  }

 private:
  const DenseOptimizer optimizer_;
  const std::vector<at::Tensor> parameters_, num_updates_;
  const at::Tensor rate_;  // [1]
  std::vector<at::Tensor> first_, second_;
};

/// A copy of a module whose parameters and buffers are in flat memory.
torch::jit::Module placed(const ScriptModule& compiled,
                          const ScriptFile& file,
                          at::Device place,
                          const float* parameters,
                          const float* buffers) {
  std::vector<bool> is_trained;
  for (const at::Tensor& parameter : jit_module(compiled).parameters()) {
    is_trained.push_back(parameter.requires_grad());
  }
  const at::NoGradGuard no_grad;  // the copy's parameters are its own, not results of the copying
  torch::jit::Module module = jit_module(compiled).deepcopy();
  module.to(place);  // what is not trained of a user's module
  std::size_t next = 0;
  for (at::Tensor parameter : module.parameters()) {
    parameter.set_requires_grad(is_trained[next]);
    if (!is_trained[next++]) continue;
    parameter.set_data(tensor_at(place, parameters, parameter.numel()).view(parameter.sizes()));
    parameters += parameter.numel();
  }
  next = 0;
  for (at::Tensor buffer : module.buffers()) {
    if (next++ == file.buffers.size()) break;
    buffer.set_data(tensor_at(place, buffers, buffer.numel()));
    buffers += buffer.numel();
  }
  return module;
}

class Network : public TensorNetwork {
 public:
  Network(const Libtorch::TensorNetworkParts& parts,
          const ScriptModule& training,
          const ScriptModule& evaluation)
      : gpu_(parts.gpu),
        place_(place_of(parts.gpu)),
        clip_norm_(parts.clip_norm),
        rounded_to_(rounded_to(parts.precision)),
        training_(placed(training,
                         parts.training,
                         place_,
                         parts.memory.parameters,
                         parts.memory.next_buffers)),
        evaluation_(placed(evaluation,
                           parts.evaluation,
                           place_,
                           parts.memory.parameters,
                           parts.memory.buffers)),
        buffers_(tensor_at(place_, parts.memory.buffers, parts.memory.num_buffer_values)),
        next_buffers_(tensor_at(place_, parts.memory.next_buffers, parts.memory.num_buffer_values)),
        flag_(tensor_at(place_, parts.memory.flag, 1)),
        gradient_(tensor_at(place_, parts.memory.gradient, parts.memory.num_parameters)),
        label_weights_(at::tensor(parts.label_weights).to(place_)),
        num_outputs_(parts.num_outputs()),
        losses_(parts, place_),
        loss_scale_(parts.memory, place_),
        optimizer_(parts.optimizer, parts.memory, place_),
        recorded_(parts.gpu) {
    if (parts.precision == Precision::kTf32) at::globalContext().setAllowTF32CuBLAS(true);
    if (parts.precision == Precision::kFp16) {  // sums are fp32, also those of a divided product
      at::globalContext().setAllowFP16ReductionCuBLAS(false);
    }
    std::int64_t offset = 0;
    for (const at::Tensor& parameter : training_.parameters()) {
      if (!parameter.requires_grad()) continue;
      inputs_.push_back(parameter);
      gradients_.push_back(gradient_.narrow(0, offset, parameter.numel()).view(parameter.sizes()));
      offset += parameter.numel();
    }
    inputs_.emplace_back();  // pooled, last
    begin_backward_thread();
  }

  void forward_backward(const Batch& batch, void* stream) override {
    with_plain_errors([&] { run_forward_backward(batch, stream); });
  }
  void apply(void* stream) override {
    with_plain_errors([&] { run_apply(stream); });
  }
  void begin_recording(void* stream) override {
    with_plain_errors([&] { recorded_.begin(stream); });
  }
  void end_recording() noexcept override { recorded_.end(); }
  void predict(ConstMatrix numeric,
               ConstMatrix pooled,
               Matrix probabilities,
               void* stream) override {
    with_plain_errors([&] { run_predict(numeric, pooled, probabilities, stream); });
  }

 private:
  /// Autograd computes for a GPU in a thread of its own, which has no context until a kernel runs;
  /// cuBLAS would warn of that.
  void begin_backward_thread() const {
    if (gpu_ < 0) return;
    const at::AutoGradMode with_graph(true);
    const at::Tensor one = at::ones({1}, place_).set_requires_grad(true);
    gradients_of((one * one).sum(), {one}, {});
  }

  void run_forward_backward(const Batch& batch, void* stream) {
    const OnStream on_stream(gpu_, stream);
    const at::NoGradGuard no_grad;
    next_buffers_.copy_(buffers_);
    at::Tensor pooled = tensor(batch.pooled), logits;
    {
      const at::AutoGradMode with_graph(true);
      const Autocast autocast(place_, rounded_to_);
      pooled.set_requires_grad(true);
      const at::Tensor factors = tensor(batch.factors);
      logits = call_module(training_, tensor(batch.numeric), pooled, num_outputs_, &factors);
      logits = logits.reshape({batch.pooled.rows, num_outputs_});
    }
    const bool has_weights = batch.weights.data != nullptr;
    const at::Tensor weights = has_weights ? tensor(batch.weights) : label_weights_;
    const at::Tensor labels =
        has_weights ? tensor(batch.labels).nan_to_num(0.0) : tensor(batch.labels);
    const TensorLosses::Computed computed_losses = losses_.compute(logits.detach(), labels);
    tensor(batch.probabilities).copy_(computed_losses.predictions);
    const at::Tensor given =
        loss_scale_.scaled(computed_losses.slopes * (weights * (1.0F / batch.loss_examples)));
    const at::Tensor loss = (computed_losses.losses * weights).sum(at::kDouble) /
                            static_cast<double>(batch.pooled.rows);
    inputs_.back() = pooled;
    const std::vector<at::Tensor> computed = gradients_of(logits, inputs_, given);
    const at::Tensor dpooled = set_gradients(computed, tensor(batch.grad_pooled));
    loss_scale_.unscale(gradient_, dpooled);
    report(loss, dpooled, batch.result);
  }

  void run_apply(void* stream) {
    const OnStream on_stream(gpu_, stream);
    const at::NoGradGuard no_grad;
    const at::Tensor is_refused = flag_.ne(0).to(at::kFloat);
    at::Tensor gradient = gradient_;
    if (clip_norm_ > 0.0) {  // as torch.nn.utils.clip_grad_norm_
      const at::Tensor scale = (clip_norm_ / (norm_of(gradient_) + 1e-6)).clamp_max(1.0);
      gradient = gradient_ * scale.to(at::kFloat);
    }
    optimizer_.apply(gradient, is_refused);
    buffers_.copy_(at::where(is_refused.ne(0), buffers_, next_buffers_));
    loss_scale_.update();
  }

  void run_predict(ConstMatrix numeric, ConstMatrix pooled, Matrix probabilities, void* stream) {
    const OnStream on_stream(gpu_, stream);
    const at::NoGradGuard no_grad;
    const Autocast autocast(place_, rounded_to_);
    const at::Tensor logits =
        call_module(evaluation_, tensor(numeric), tensor(pooled), num_outputs_, nullptr);
    tensor(probabilities).copy_(losses_.predictions(logits.reshape({pooled.rows, num_outputs_})));
  }

  at::Tensor tensor(ConstMatrix x) const {
    return tensor_at(place_, x.data, {x.rows, x.cols}, {x.stride, 1});
  }

  /// In double: it is finite exactly if all values are.
  static at::Tensor norm_of(const at::Tensor& values) {
    return at::linalg_vector_norm(values, 2, std::nullopt, false, at::kDouble);
  }

  /// Copies them to their places; an undefined one is zero. Returns that of `pooled`.
  at::Tensor set_gradients(const std::vector<at::Tensor>& computed, const at::Tensor& to_pooled) {
    std::vector<at::Tensor> to, from;
    const auto add = [&](const at::Tensor& place, const at::Tensor& value) {
      if (!value.defined()) {
        place.zero_();
        return;
      }
      to.push_back(place);
      from.push_back(value.reshape(place.sizes()));
    };
    for (std::size_t i = 0; i < gradients_.size(); ++i) add(gradients_[i], computed[i]);
    add(to_pooled, computed.back());
    at::_foreach_copy_(to, from);
    return to_pooled;
  }

  void report(const at::Tensor& loss, const at::Tensor& dpooled, double* to) {
    const at::Tensor norm = norm_of(gradient_);
    std::vector<at::Tensor> numbers{loss, norm};
    if (dpooled.numel() > 0) {
      constexpr double kLargest = std::numeric_limits<double>::infinity();
      numbers.push_back(at::linalg_vector_norm(dpooled, kLargest).to(at::kDouble));
    }
    const at::Tensor flag = at::isfinite(at::stack(numbers)).all().logical_not();
    flag_.copy_(flag.reshape({1}));
    loss_scale_.flag_overflow(loss);
    const at::Tensor result = at::for_blob(to, {2})
                                  .options(at::TensorOptions(at::kDouble).device(place_))
                                  .target_device(place_)
                                  .make_tensor();
    result.copy_(at::stack({loss, norm}));
  }

  const int gpu_;
  const at::Device place_;
  const double clip_norm_;
  const at::ScalarType rounded_to_;
  torch::jit::Module training_, evaluation_;
  at::Tensor buffers_, next_buffers_, flag_, gradient_;
  const at::Tensor label_weights_;  // [num_labels]
  const std::int64_t num_outputs_;
  const TensorLosses losses_;
  DeviceLossScale loss_scale_;
  FusedOptimizer optimizer_;
  RecordingPool recorded_;
  std::vector<at::Tensor> inputs_;     // whose gradients are wanted: parameters, pooled
  std::vector<at::Tensor> gradients_;  // of the parameters, parts of gradient_
};

}  // namespace

std::unique_ptr<TensorNetwork> make_tensor_network(const Libtorch::TensorNetworkParts& parts,
                                                   const ScriptModule& training,
                                                   const ScriptModule& evaluation) {
  return std::make_unique<Network>(parts, training, evaluation);
}

}  // namespace satrap::dense
