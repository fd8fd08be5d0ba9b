#pragma once

#include <memory>

#include "satrap/dense/dense_network.h"

namespace satrap::dense {

/// `model.engine: graph`: the network on a device, computed by libtorch from the model's Script, in
/// training form under autograd. Parameters, gradient and optimizer state stay in the device's
/// memory; a batch is one piece. bf16 and fp16 by autocast.
std::unique_ptr<DenseNetwork> make_graph_network(const job::ModelConfig& model,
                                                 const job::DenseOptimizerConfig& optimizer,
                                                 Precision precision,
                                                 const InputShape& shape,
                                                 std::uint64_t seed,
                                                 ThreadPool& pool,
                                                 const DensePlace* place);

}  // namespace satrap::dense
