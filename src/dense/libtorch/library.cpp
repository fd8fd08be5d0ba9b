#include <algorithm>
#include <filesystem>
#include <new>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/headeronly/version.h>

#include "src/dense/libtorch.h"
#include "src/dense/libtorch/one_thread.h"
#include "src/dense/libtorch/plain_errors.h"
#include "src/dense/libtorch/script_module.h"
#include "src/dense/libtorch/tensor_network.h"

namespace satrap::dense {
namespace {

at::Tensor tensor_on(const Libtorch::Operand& from) {
  const at::Tensor tensor =
      at::from_blob(const_cast<Bf16*>(from.values), {from.rows, from.cols}, at::kBFloat16);
  return from.transposed ? tensor.t() : tensor;
}

at::Tensor tensor_of(const ScriptFile::Value& value) {
  at::Tensor tensor = at::empty(value.shape, at::kFloat);
  std::copy_n(value.values, tensor.numel(), tensor.mutable_data_ptr<float>());
  return tensor;
}

/// The user's module with other parameters.
torch::jit::Module with_parameters(const torch::jit::Module& module,
                                   std::span<const ScriptFile::Value> parameters) {
  const at::NoGradGuard no_grad;
  torch::jit::Module copy = module.deepcopy();
  std::vector<at::Tensor> copies;
  for (const at::Tensor& parameter : copy.parameters()) copies.push_back(parameter);
  std::size_t i = 0, trained = 0;
  for (const at::Tensor& parameter : module.parameters()) {
    at::Tensor& value = copies[i++];
    if (!parameter.requires_grad()) continue;  // stays as it is
    value.set_data(tensor_of(parameters[trained++]));
    value.set_requires_grad(true);
  }
  return copy;
}

torch::jit::Module module_of(const ScriptFile& file) {
  torch::jit::Module module("SatrapDense");
  if (file.module == nullptr) {
    for (const ScriptFile::Value& p : file.parameters) {
      module.register_parameter(p.name, tensor_of(p).set_requires_grad(true), false);
    }
    for (const ScriptFile::Value& b : file.buffers) module.register_buffer(b.name, tensor_of(b));
  } else {
    module.register_module("module", with_parameters(jit_module(*file.module), file.parameters));
  }
  module.register_attribute("training", c10::BoolType::get(), false);  // as every nn.Module has
  module.define(file.source);
  return module;
}

/// The folder of the libtorch that this process has opened.
std::string folder_of_libtorch() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&at::get_mkl_version), &library) == 0) return "?";
  return std::filesystem::path(library.dli_fname).parent_path().lexically_normal();
}

class Library : public Libtorch {
 public:
  std::string describe() const override {
    std::string blas = at::get_mkl_version();
    if (const std::size_t end = blas.find(" for "); end != std::string::npos) blas.resize(end);
    return std::string("libtorch ") + TORCH_VERSION + ", " + blas + ", CPU capability " +
           at::get_cpu_capability() + ", in " + folder_of_libtorch();
  }

  void multiply(const Operand& a, const Operand& b, Bf16* product) const override {
    use_one_thread();
    const std::int64_t rows = a.transposed ? a.cols : a.rows, cols = b.transposed ? b.rows : b.cols;
    try {
      const c10::InferenceMode no_autograd;
      at::Tensor out = at::from_blob(product, {rows, cols}, at::kBFloat16);
      at::mm_out(out, tensor_on(a), tensor_on(b));
    } catch (const c10::Error& error) {
      throw std::runtime_error(error.what_without_backtrace());
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {  // of oneDNN, which names no operation
      throw std::runtime_error(std::string("a product of bf16 matrices fails: ") + error.what() +
                               "; too little memory may be the reason");
    }
  }

  std::unique_ptr<ScriptModule> load(const std::string& path,
                                     std::int64_t num_outputs) const override {
    return load_script_module(path, num_outputs);
  }

  std::unique_ptr<ScriptModule> compile(const ScriptFile& file,
                                        std::int64_t num_outputs) const override {
    return with_plain_errors([&] { return wrap_module(module_of(file), num_outputs); });
  }

  std::string save(const ScriptFile& file) const override {
    std::ostringstream bytes;
    with_plain_errors([&] { module_of(file).save(bytes); });
    return std::move(bytes).str();
  }

  std::unique_ptr<TensorNetwork> make_network(const TensorNetworkParts& parts) const override {
    const std::int64_t num_outputs = parts.num_outputs();
    return with_plain_errors([&] {
      return make_tensor_network(parts, *compile(parts.training, num_outputs),
                                 *compile(parts.evaluation, num_outputs));
    });
  }
};

}  // namespace
}  // namespace satrap::dense

extern "C" const satrap::dense::Libtorch* satrap_libtorch();

const satrap::dense::Libtorch* satrap_libtorch() {
  static const satrap::dense::Library library;
  return &library;
}
