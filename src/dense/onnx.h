#pragma once

#include <span>
#include <string>

#include "satrap/dense/dense_network.h"
#include "src/dense/model.h"
#include "src/dense/parameters.h"

namespace satrap::dense {

/// The model with the numbers of `parameters` and `buffers` (flat, as `layout` says) in evaluation
/// form, the bytes of a file .onnx. Throws Error(kInvalidConfig) for a user's module, and for more
/// numbers than such a file can have; Error(kUnavailable) without protobuf.
std::string to_onnx(const Model& model,
                    const InputShape& shape,
                    const Layout& layout,
                    std::span<const float> parameters,
                    std::span<const float> buffers);

}  // namespace satrap::dense
