#include "src/dense/libtorch/script_module.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include "src/dense/libtorch/call_module.h"
#include "src/dense/libtorch/one_thread.h"

namespace satrap::dense {
namespace {

/// A matrix as a tensor on the same memory.
at::Tensor tensor_on(ConstMatrix x) {
  return at::from_blob(const_cast<float*>(x.data), {x.rows, x.cols}, {x.stride, 1}, at::kFloat);
}

/// Its parameters are its own, not results of the copying.
torch::jit::Module copy_of(const torch::jit::Module& module) {
  const at::NoGradGuard no_grad;
  return module.deepcopy();
}

class Replica : public ScriptModule::Replica {
 public:
  Replica(const torch::jit::Module& module,
          const std::vector<bool>& is_trained,
          std::span<const ConstMatrix> values,
          std::int64_t num_outputs)
      : module_(copy_of(module)), num_outputs_(num_outputs) {
    std::size_t i = 0, trained = 0;
    for (at::Tensor parameter : module_.parameters()) {
      if (!is_trained[i++]) {
        parameter.set_requires_grad(false);
        continue;
      }
      parameter.set_data(tensor_on(values[trained++]).view(parameter.sizes()));
      parameter.set_requires_grad(true);
      inputs_.push_back(parameter);
    }
    inputs_.emplace_back();  // pooled, last
  }

  void forward(ConstMatrix numeric, ConstMatrix pooled, bool training, Matrix logits) override {
    use_one_thread();
    const at::NoGradGuard no_grad;
    at::Tensor input = tensor_on(pooled);
    {
      const at::AutoGradMode with_graph(training);
      input.set_requires_grad(training);
      logits_ = call_module(module_, tensor_on(numeric), input, num_outputs_);
    }
    inputs_.back() = input;
    tensor_on(logits).copy_(logits_.detach().reshape({logits.rows, logits.cols}));
  }

  void backward(ConstMatrix dlogits,
                std::span<const Matrix> gradients,
                bool accumulate,
                Matrix dpooled) override {
    use_one_thread();
    const at::Tensor given = tensor_on(dlogits).reshape(logits_.sizes());
    const std::vector<at::Tensor> computed = gradients_of(logits_, inputs_, given);
    logits_.reset();
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < gradients.size(); ++i) write(computed[i], accumulate, gradients[i]);
    write(computed.back(), false, dpooled);
  }

 private:
  /// An undefined gradient is zero.
  static void write(const at::Tensor& gradient, bool accumulate, Matrix to) {
    at::Tensor sum = tensor_on(to);
    if (!accumulate) sum.zero_();
    if (gradient.defined()) sum.add_(gradient.reshape(sum.sizes()));
  }

  torch::jit::Module module_;
  std::int64_t num_outputs_;
  std::vector<at::Tensor> inputs_;  // whose gradients are wanted: the trained parameters, pooled
  at::Tensor logits_;               // from forward to backward, with their graph
};

/// What a file is that libtorch cannot load; "": nothing that is known. The names of what a ZIP
/// archive holds stand at its end.
std::string kind_of_file(const std::string& path) {
  constexpr std::streamoff kMaxNames = 1 << 20;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kMaxNames));
  const std::string end((std::istreambuf_iterator<char>(file)), {});
  std::array<char, 4> first{};
  file.clear();
  file.seekg(0);
  file.read(first.data(), first.size());
  const std::string_view begin(first.data(), first.size());
  if (!begin.starts_with("PK")) return begin.starts_with("\x80") ? "a pickle of torch.save" : "";
  if (end.find("models/model.json") != std::string::npos) return "a program of torch.export";
  if (end.find("/constants.pkl") != std::string::npos) return "";
  return end.find("/data.pkl") != std::string::npos ? "a pickle of torch.save" : "";
}

/// The user's module in a file.
torch::jit::Module load(const std::string& path) {
  use_one_thread();
  try {
    torch::jit::Module module = torch::jit::load(path, at::kCPU);
    module.eval();
    return module;
  } catch (const std::exception& error) {
    const std::string kind = kind_of_file(path);
    const std::string reason = first_lines(error);
    const std::string what =
        kind.empty() ? "cannot be loaded as TorchScript: " +
                           reason.substr(0, reason.find(". This is an internal miniz error"))
                     : "is " + kind + ", not TorchScript";
    refuse(what, "; torch.jit.save(torch.jit.script(network), 'net.pt') writes it");
  }
}

class LoadedModule : public ScriptModule {
 public:
  LoadedModule(torch::jit::Module module, std::int64_t num_outputs)
      : module_(std::move(module)), num_outputs_(num_outputs) {
    for (const at::Tensor& parameter : module_.parameters()) {
      is_trained_.push_back(parameter.requires_grad());
    }
  }

  std::vector<Parameter> parameters() const override {
    std::vector<Parameter> trained;
    for (const auto& parameter : module_.named_parameters()) {
      const at::Tensor& value = parameter.value;
      if (!value.requires_grad()) continue;
      if (value.scalar_type() != at::kFloat) {
        refuse("parameter '", parameter.name, "' is not fp32 but ",
               c10::toString(value.scalar_type()));
      }
      const at::Tensor values = value.detach().contiguous();
      // The template const_data_ptr<T> is mangled differently in libtorch than by clang.
      const auto* begin = static_cast<const float*>(values.const_data_ptr());
      trained.push_back({parameter.name, value.sizes().vec(), {begin, begin + values.numel()}});
    }
    return trained;
  }

  void try_out(std::int64_t num_numeric, std::int64_t pooled_width) const override {
    use_one_thread();
    for (const std::int64_t rows : {2, 1}) try_out(rows, num_numeric, pooled_width);
  }

  std::unique_ptr<ScriptModule::Replica> replicate(
      std::span<const ConstMatrix> parameters) const override {
    use_one_thread();
    return std::make_unique<dense::Replica>(module_, is_trained_, parameters, num_outputs_);
  }

  const torch::jit::Module& module() const { return module_; }

 private:
  void try_out(std::int64_t rows, std::int64_t num_numeric, std::int64_t pooled_width) const {
    const at::AutoGradMode with_graph(true);
    torch::jit::Module copy = module_.deepcopy();
    std::vector<at::Tensor> inputs;
    std::size_t i = 0;
    for (at::Tensor parameter : copy.parameters()) {
      if (!is_trained_[i++]) continue;
      parameter.set_data(parameter.detach().clone());
      parameter.set_requires_grad(true);
      inputs.push_back(parameter);
    }
    at::Tensor pooled = at::zeros({rows, pooled_width});
    pooled.set_requires_grad(true);
    inputs.push_back(pooled);
    const at::Tensor logits =
        call_module(copy, at::zeros({rows, num_numeric}), pooled, num_outputs_);
    if (!logits.requires_grad()) refuse("its logits do not depend on what is trained");
    gradients_of(logits, inputs, at::ones_like(logits));
  }

  torch::jit::Module module_;
  std::int64_t num_outputs_;
  std::vector<bool> is_trained_;  // of the module's parameters, in its order
};

}  // namespace

std::unique_ptr<ScriptModule> load_script_module(const std::string& path,
                                                 std::int64_t num_outputs) {
  return wrap_module(load(path), num_outputs);
}

std::unique_ptr<ScriptModule> wrap_module(torch::jit::Module module, std::int64_t num_outputs) {
  return std::make_unique<LoadedModule>(std::move(module), num_outputs);
}

const torch::jit::Module& jit_module(const ScriptModule& module) {
  return static_cast<const LoadedModule&>(module).module();
}

}  // namespace satrap::dense
