#pragma once

namespace satrap::backend {

/// The lowest compute capability for which the kernels are compiled: 80 for sm_80. Newer GPUs run
/// them too, by the PTX of the highest.
int lowest_architecture();

}  // namespace satrap::backend
