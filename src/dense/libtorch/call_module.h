#pragma once

#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

namespace satrap::dense {

template <class Exception = std::runtime_error, class... Args>
[[noreturn]] void refuse(const Args&... args) {
  std::ostringstream reason;
  static_cast<void>((reason << ... << args));
  throw Exception(std::move(reason).str());
}

/// libtorch's message of an error, without the stack of its C++ code.
inline std::string first_lines(const std::exception& error) {
  const std::string what = error.what();
  return what.substr(0, what.find("\nException raised"));
}

/// What went wrong in a module, in one line, and where its author wrote that: without the traces of
/// TorchScript's interpreter.
std::string reason_in_module(const std::exception& error);

/// The logits in fp32, of any shape with one number per row and output; those of autocast may be
/// bf16 or fp16. `factors`: a third argument, unless null. What a module refuses is a
/// std::runtime_error, logits of another kind a std::range_error.
at::Tensor call_module(torch::jit::Module& module,
                       const at::Tensor& numeric,
                       const at::Tensor& pooled,
                       std::int64_t num_outputs,
                       const at::Tensor* factors = nullptr);

/// Undefined where the logits do not depend on an input.
std::vector<at::Tensor> gradients_of(const at::Tensor& logits,
                                     const std::vector<at::Tensor>& inputs,
                                     const at::Tensor& given);

}  // namespace satrap::dense
