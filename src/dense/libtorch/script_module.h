#pragma once

#include <memory>
#include <string>

#include "src/dense/libtorch.h"

namespace torch::jit {
struct Module;
}

namespace satrap::dense {

std::unique_ptr<ScriptModule> load_script_module(const std::string& path, std::int64_t num_outputs);

std::unique_ptr<ScriptModule> wrap_module(torch::jit::Module module, std::int64_t num_outputs);

/// The module in one that these returned.
const torch::jit::Module& jit_module(const ScriptModule& module);

}  // namespace satrap::dense
