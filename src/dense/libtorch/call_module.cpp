#include "src/dense/libtorch/call_module.h"

#include <string_view>

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

namespace satrap::dense {

std::string reason_in_module(const std::exception& error) {
  constexpr std::string_view kTrace = "The following operation failed in the TorchScript";
  constexpr std::string_view kOriginal = "original code (most recent call last):\n";
  constexpr std::string_view kError = "RuntimeError: ";
  std::string text = first_lines(error);
  if (!text.starts_with(kTrace)) return text;
  while (text.ends_with('\n')) text.pop_back();
  std::string reason = text.substr(text.rfind('\n') + 1);
  if (reason.starts_with(kError)) reason.erase(0, kError.size());
  std::size_t frame = text.find(kOriginal);
  if (frame == std::string::npos) return reason;
  frame += kOriginal.size();
  const std::size_t begin = text.find_first_not_of(' ', frame), end = text.find(", in ", frame);
  if (end == std::string::npos) return reason;
  return reason + " (" + text.substr(begin, end - begin) + ")";
}

at::Tensor call_module(torch::jit::Module& module,
                       const at::Tensor& numeric,
                       const at::Tensor& pooled,
                       std::int64_t num_outputs,
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
    refuse(shapes(), " fails: ", reason_in_module(error));
  }
  if (!result.isTensor()) refuse<std::range_error>(shapes(), " gives no tensor");
  at::Tensor logits = result.toTensor();
  if (at::autocast::is_autocast_enabled(logits.device().type())) logits = logits.to(at::kFloat);
  const std::int64_t rows = numeric.size(0);
  const bool matrix = logits.dim() == 2 && logits.size(1) == num_outputs;
  const bool vector = num_outputs == 1 && logits.dim() <= 1;  // 0: of one row, squeezed
  if (logits.scalar_type() != at::kFloat || (!matrix && !vector) ||
      logits.numel() != rows * num_outputs) {
    refuse<std::range_error>(
        shapes(), " gives ", c10::toString(logits.scalar_type()), " ", logits.sizes(),
        ", wanted are ", rows, num_outputs == 1 ? "" : " rows of ",
        num_outputs == 1 ? "" : std::to_string(num_outputs) + " (one for each label or class)",
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
    refuse("backward fails: ", reason_in_module(error));
  }
}

}  // namespace satrap::dense
