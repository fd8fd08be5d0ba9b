#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include "satrap/core/error.h"
#include "satrap/dense/dense_network.h"

namespace satrap::dense {

std::string describe_libtorch() {
  std::string blas = at::get_mkl_version();
  if (const std::size_t end = blas.find(" for "); end != std::string::npos) blas.resize(end);
  return concat("libtorch ", TORCH_VERSION, ", ", blas, ", CPU capability ",
                at::get_cpu_capability());
}

}  // namespace satrap::dense
