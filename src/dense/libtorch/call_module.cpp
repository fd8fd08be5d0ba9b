#include "src/dense/libtorch/call_module.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

namespace satrap::dense {

at::Tensor call_module(torch::jit::Module& module,
                       const at::Tensor& numeric,
                       const at::Tensor& pooled,
                       std::int64_t num_labels,
                       const at::Tensor* factors) {
  // The optimizing executor changes the code after a few runs, and with it the last bits.
  const torch::jit::GraphOptimizerEnabledGuard plain(false);
  const auto shapes = [&] {
    std::ostringstream text;
    text << "forward(numeric [" << numeric.size(0) << ", " << numeric.size(1) << "], pooled ["
         << pooled.size(0) << ", " << pooled.size(1) << "])";
    return std::move(text).str();
  };
  c10::IValue result;
  try {
    std::vector<c10::IValue> inputs{numeric, pooled};
    if (factors != nullptr) inputs.emplace_back(*factors);
    result = module.forward(std::move(inputs));
  } catch (const std::exception& error) {
    refuse(shapes(), " fails: ", first_lines(error));
  }
  if (!result.isTensor()) refuse<std::range_error>(shapes(), " gives no tensor");
  at::Tensor logits = result.toTensor();
  if (at::autocast::is_autocast_enabled(logits.device().type())) logits = logits.to(at::kFloat);
  const std::int64_t rows = numeric.size(0);
  const bool matrix = logits.dim() == 2 && logits.size(1) == num_labels;
  const bool vector = num_labels == 1 && logits.dim() <= 1;  // 0: of one row, squeezed
  if (logits.scalar_type() != at::kFloat || (!matrix && !vector) ||
      logits.numel() != rows * num_labels) {
    refuse<std::range_error>(
        shapes(), " gives ", c10::toString(logits.scalar_type()), " ", logits.sizes(),
        ", wanted are ", rows, num_labels == 1 ? "" : " rows of ",
        num_labels == 1 ? "" : std::to_string(num_labels) + " (one for each label)",
        " logits in fp32");
  }
  return logits;
}

std::vector<at::Tensor> gradients_of(const at::Tensor& logits,
                                     const std::vector<at::Tensor>& inputs,
                                     const at::Tensor& given) {
  try {
    return torch::autograd::grad({logits}, inputs, {given}, /*retain_graph=*/false,
                                 /*create_graph=*/false, /*allow_unused=*/true);
  } catch (const std::exception& error) {
    refuse("backward fails: ", first_lines(error));
  }
}

}  // namespace satrap::dense
