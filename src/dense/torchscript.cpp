#include "src/dense/torchscript.h"

#include <sstream>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

#include "satrap/core/error.h"
#include "src/dense/script.h"

namespace satrap::dense {
namespace {

at::Tensor tensor_of(const float* values, const std::vector<std::int64_t>& shape) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  std::copy_n(values, tensor.numel(), tensor.mutable_data_ptr<float>());
  return tensor;
}

/// The user's module with other parameters.
torch::jit::Module with_parameters(const torch::jit::Module& module,
                                   const Layout& layout,
                                   std::span<const float> parameters) {
  torch::jit::Module copy = module.deepcopy();
  std::vector<at::Tensor> copies;
  for (const at::Tensor& parameter : copy.parameters()) copies.push_back(parameter);
  std::size_t i = 0, trained = 0;
  for (const at::Tensor& parameter : module.parameters()) {
    at::Tensor& value = copies[i++];
    if (!parameter.requires_grad()) continue;  // stays as it is, and is not in the layout
    const Parameter& p = layout.parameters()[trained++];
    value.set_data(tensor_of(parameters.data() + p.offset, p.shape));
    value.set_requires_grad(true);
  }
  return copy;
}

/// Adds the parameters and buffers of an exported model as attributes.
void add_values(torch::jit::Module& module,
                const Layout& layout,
                std::span<const float> parameters,
                std::span<const float> buffers) {
  for (const Parameter& p : layout.parameters()) {
    at::Tensor value = tensor_of(parameters.data() + p.offset, p.shape);
    module.register_parameter(attribute_name(p.name), value.set_requires_grad(true), false);
  }
  for (const Buffer& b : layout.buffers()) {
    module.register_buffer(attribute_name(b.name), tensor_of(buffers.data() + b.offset, {b.size}));
  }
}

}  // namespace

std::string to_torchscript(const Model& model,
                           const Layout& layout,
                           std::span<const float> parameters,
                           std::span<const float> buffers) {
  Script script(layout);
  const std::string logits = model.write(script);
  // squeeze leaves several columns unchanged.
  const std::string source = script.source("torch.squeeze(" + logits + ", 1)");
  try {
    torch::jit::Module module("SatrapDense");
    if (script.module() == nullptr) {
      add_values(module, layout, parameters, buffers);
    } else {
      module.register_module("module", with_parameters(*script.module(), layout, parameters));
    }
    module.register_attribute("training", c10::BoolType::get(), false);  // as every nn.Module has
    module.define(source);
    std::ostringstream bytes;
    module.save(bytes);
    return std::move(bytes).str();
  } catch (const std::exception& error) {  // from libtorch: the script is ours
    throw Error(ErrorCode::kInternal,
                concat("libtorch refuses the network's TorchScript: ", error.what(), "\n", source));
  }
}

}  // namespace satrap::dense
