#pragma once

#include <memory>

#include "src/dense/model.h"

namespace satrap::dense {

/// The same model, computed by libtorch: its Script in training form under autograd, and in
/// evaluation form. Parameters, gradients and statistics stay where the passes have them, and
/// dropout takes the factors of `model`; sums run in libtorch's order. In fp32.
std::unique_ptr<Model> make_graph_model(std::unique_ptr<Model> model,
                                        Layout& layout,  // of the model
                                        std::int64_t num_labels);

}  // namespace satrap::dense
