#include <algorithm>
#include <memory>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include "satrap/core/error.h"
#include "src/dense/model.h"

namespace satrap::dense {
namespace {

/// A matrix as a tensor on the same memory.
at::Tensor tensor_on(ConstMatrix x) {
  return at::from_blob(const_cast<float*>(x.data), {x.rows, x.cols}, {x.stride, 1}, at::kFloat);
}

[[noreturn]] void refuse(const std::string& path,
                         const std::string& reason,
                         ErrorCode code = ErrorCode::kInvalidConfig) {
  throw Error(code, concat("model.path: '", path, "': ", reason));
}

/// libtorch's message of an error, without the stack of its C++ code.
std::string first_lines(const std::string& what) {
  return what.substr(0, what.find("\nException raised"));
}

/// A user's module, torch.jit.save(torch.jit.script(...)): forward(numeric, pooled) returns the
/// logits, [rows] or [rows, 1], with several labels [rows, labels], and autograd computes the
/// gradients. It runs in evaluation mode. Its parameters are trained unless they are frozen
/// (requires_grad False); frozen ones and its buffers do not change.
class TorchScript : public Model {
 public:
  TorchScript(std::string path, const InputShape& shape, Layout& layout)
      : path_(std::move(path)), num_labels_(shape.num_labels()) {
    try {
      module_ = std::make_shared<torch::jit::Module>(torch::jit::load(path_, at::kCPU));
      module_->eval();
    } catch (const std::exception& error) {
      refuse(path_, "cannot be loaded as TorchScript: " + first_lines(error.what()));
    }
    for (const auto& parameter : module_->named_parameters()) {
      is_trained_.push_back(parameter.value.requires_grad());
      if (is_trained_.back()) add(parameter.name, parameter.value, layout);
    }
    if (parameters_.empty()) refuse(path_, "has no parameters to train");
    for (const std::int64_t rows : {2, 1}) try_out(rows, shape);
  }

  void forward(Pass& pass, const ModelInput& input, Matrix logits) const override {
    Run& run = run_of(pass);
    const at::NoGradGuard no_grad;
    at::Tensor pooled = tensor_on(input.pooled);
    {
      const at::AutoGradMode with_graph(pass.training());
      pooled.set_requires_grad(pass.training());
      run.logits = call(run.module, tensor_on(input.numeric), pooled, ErrorCode::kInternal);
    }
    run.pooled = pooled;
    tensor_on(logits).copy_(run.logits.detach().reshape({logits.rows, logits.cols}));
  }

  void backward(Pass& pass, const ModelInput&, Matrix dlogits, Matrix dpooled) const override {
    Run& run = run_of(pass);
    std::vector<at::Tensor> inputs = run.parameters;
    inputs.push_back(run.pooled);
    const at::Tensor given = tensor_on(dlogits).reshape(run.logits.sizes());
    const std::vector<at::Tensor> gradients =
        gradients_of(run.logits, inputs, given, ErrorCode::kInternal);
    run.logits.reset();
    const at::NoGradGuard no_grad;
    for (std::size_t i = parameters_.size(); i-- > 0;) {
      at::Tensor sum = tensor_on(pass.gradient(parameters_[i]));
      if (!pass.accumulate()) sum.zero_();
      if (gradients[i].defined()) sum.add_(gradients[i].reshape(sum.sizes()));
      pass.finished(parameters_[i]);
    }
    const at::Tensor& of_pooled = gradients.back();
    at::Tensor out = tensor_on(dpooled);
    if (of_pooled.defined()) {
      out.copy_(of_pooled);
    } else {
      out.zero_();
    }
  }

  std::string write(Script& script) const override { return script.call(module_, num_labels_); }

 private:
  /// The state of a pass: the module, its parameters on the network's memory, and the graph from
  /// forward to backward.
  struct Run {
    torch::jit::Module module;
    std::vector<at::Tensor> parameters;
    at::Tensor pooled, logits;
  };

  void add(const std::string& name, const at::Tensor& value, Layout& layout) {
    if (value.scalar_type() != at::kFloat) {
      refuse(path_,
             concat("parameter '", name, "' is not fp32 but ", c10::toString(value.scalar_type())));
    }
    const at::Tensor values = value.detach().contiguous();
    // The template const_data_ptr<T> is mangled differently in libtorch than by clang.
    const auto* begin = static_cast<const float*>(values.const_data_ptr());
    parameters_.push_back(layout.add_parameter(name, value.sizes().vec(),
                                               std::vector<float>(begin, begin + values.numel())));
  }

  /// Runs forward and backward once, so that a module that cannot be trained is refused at the
  /// start.
  void try_out(std::int64_t rows, const InputShape& shape) const {
    const at::AutoGradMode with_graph(true);
    torch::jit::Module copy = module_->deepcopy();
    std::vector<at::Tensor> inputs;
    std::size_t i = 0;
    for (at::Tensor parameter : copy.parameters()) {
      if (!is_trained_[i++]) continue;
      parameter.set_data(parameter.detach().clone());
      parameter.set_requires_grad(true);
      inputs.push_back(parameter);
    }
    at::Tensor pooled = at::zeros({rows, shape.pooled_width()});
    pooled.set_requires_grad(true);
    inputs.push_back(pooled);
    const at::Tensor logits =
        call(copy, at::zeros({rows, shape.num_numeric}), pooled, ErrorCode::kInvalidConfig);
    if (!logits.requires_grad()) refuse(path_, "its logits do not depend on what is trained");
    gradients_of(logits, inputs, at::ones_like(logits), ErrorCode::kInvalidConfig);
  }

  std::vector<at::Tensor> gradients_of(const at::Tensor& logits,
                                       const std::vector<at::Tensor>& inputs,
                                       const at::Tensor& given,
                                       ErrorCode code) const {
    try {
      return torch::autograd::grad({logits}, inputs, {given}, /*retain_graph=*/false,
                                   /*create_graph=*/false, /*allow_unused=*/true);
    } catch (const std::exception& error) {
      refuse(path_, "backward fails: " + first_lines(error.what()), code);
    }
  }

  Run& run_of(Pass& pass) const {
    if (!pass.own()) {
      auto run = std::make_shared<Run>();
      run->module = module_->deepcopy();
      std::size_t i = 0, trained = 0;
      for (at::Tensor parameter : run->module.parameters()) {
        if (!is_trained_[i++]) {
          parameter.set_requires_grad(false);
          continue;
        }
        const ConstMatrix value = pass.value(parameters_[trained++]);
        parameter.set_data(tensor_on(value).view(parameter.sizes()));
        parameter.set_requires_grad(true);
        run->parameters.push_back(parameter);
      }
      pass.own() = std::move(run);
    }
    return *static_cast<Run*>(pass.own().get());
  }

  /// The logits, of any shape with one number per row and label.
  at::Tensor call(torch::jit::Module& module,
                  const at::Tensor& numeric,
                  const at::Tensor& pooled,
                  ErrorCode code) const {
    // The optimizing executor changes the code after a few runs, and with it the last bits.
    const torch::jit::GraphOptimizerEnabledGuard plain(false);
    at::Tensor logits;
    const auto shapes = [&] {
      return concat("forward(numeric [", numeric.size(0), ", ", numeric.size(1), "], pooled [",
                    pooled.size(0), ", ", pooled.size(1), "])");
    };
    try {
      const c10::IValue result = module.forward({numeric, pooled});
      if (!result.isTensor()) refuse(path_, shapes() + " gives no tensor");
      logits = result.toTensor();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      refuse(path_, concat(shapes(), " fails: ", first_lines(error.what())), code);
    }
    if (logits.scalar_type() != at::kFloat || !has_a_number_each(logits, numeric.size(0))) {
      const std::string per_row =
          num_labels_ == 1 ? "" : concat(" rows of ", num_labels_, " (one for each label)");
      refuse(path_,
             concat(shapes(), " gives ", c10::toString(logits.scalar_type()), " ", logits.sizes(),
                    ", wanted are ", numeric.size(0), per_row, " logits in fp32"));
    }
    return logits;
  }

  bool has_a_number_each(const at::Tensor& logits, std::int64_t rows) const {
    const bool matrix = logits.dim() == 2 && logits.size(1) == num_labels_;
    const bool vector = num_labels_ == 1 && logits.dim() <= 1;  // 0: of one row, squeezed
    return (matrix || vector) && logits.numel() == rows * num_labels_;
  }

  std::string path_;
  std::int64_t num_labels_;
  std::shared_ptr<torch::jit::Module> module_;
  std::vector<bool> is_trained_;         // of the module's parameters, in its order
  std::vector<ParameterId> parameters_;  // of those that are
};

}  // namespace

std::unique_ptr<Model> make_torchscript(const job::ModelConfig& config,
                                        const InputShape& shape,
                                        Layout& layout) {
  return std::make_unique<TorchScript>(config.path, shape, layout);
}

}  // namespace satrap::dense
