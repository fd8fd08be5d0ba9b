#pragma once

#include <memory>

#include "src/dense/libtorch.h"

namespace satrap::dense {

/// `training` and `evaluation`: compiled modules of parts.training and parts.evaluation.
std::unique_ptr<TensorNetwork> make_tensor_network(const Libtorch::TensorNetworkParts& parts,
                                                   const ScriptModule& training,
                                                   const ScriptModule& evaluation);

}  // namespace satrap::dense
