#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/dense/libtorch.h"
#include "src/dense/model.h"
#include "src/dense/parameters.h"
#include "src/dense/torchscript_text.h"

namespace satrap::dense {

/// A module with the numbers of `parameters` and `buffers` (flat, as `layout` says) whose
/// forward(numeric, pooled) computes the model's logits, [rows], or [rows, num_outputs] with
/// several outputs, in the format of torch.jit.save.
std::string to_torchscript(const Model& model,
                           const Layout& layout,
                           std::span<const float> parameters,
                           std::span<const float> buffers);

/// The file of a script that returns `logits`. It refers to the numbers.
ScriptFile script_file(const TorchScriptText& script,
                       const std::string& logits,
                       const Layout& layout,
                       std::span<const float> parameters,
                       std::span<const float> buffers);

}  // namespace satrap::dense
