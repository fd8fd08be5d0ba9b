#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/dense/model.h"
#include "src/dense/parameters.h"
#include "src/dense/script.h"

namespace satrap::dense {

/// A module with the numbers of `parameters` and `buffers` (flat, as `layout` says) whose
/// forward(numeric, pooled) computes the model's logits, [rows], or [rows, num_labels] with several
/// labels, in the format of torch.jit.save.
std::string to_torchscript(const Model& model,
                           const Layout& layout,
                           std::span<const float> parameters,
                           std::span<const float> buffers);

/// The module of a script that returns `logits`, to compute with.
std::unique_ptr<ScriptModule> compile_script(const Script& script,
                                             const std::string& logits,
                                             const Layout& layout,
                                             std::span<const float> parameters,
                                             std::span<const float> buffers,
                                             std::int64_t num_labels);

}  // namespace satrap::dense
