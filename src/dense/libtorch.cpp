#include "src/dense/libtorch.h"

#include "satrap/core/loaded_library.h"
#include "satrap/dense/dense_network.h"

namespace satrap::dense {
namespace {

const Libtorch& open(const char* file, const char* needed_for, const char* remedy) {
  void* const entry = open_library({file, "satrap_libtorch", needed_for, remedy});
  return *reinterpret_cast<const Libtorch* (*)()>(entry)();
}

}  // namespace

const Libtorch& libtorch() {
  static const Libtorch& opened =
      open("libsatrap_libtorch.so",
           "train.precision: bf16, model: torchscript, model.engine: graph and the export of a "
           "network",
           "it is built with satrap, in lib/ beside bin/");
  return opened;
}

const Libtorch& libtorch_for_cuda() {
  static const Libtorch& opened =
      open("libsatrap_libtorch_cuda.so", "a dense network on a GPU",
           "a build with CUDA has it in lib/ beside bin/, and needs the libraries of PyTorch with "
           "CUDA; model.engine: native computes the network on the CPU");
  return opened;
}

std::string describe_libtorch() { return libtorch().describe(); }
std::string describe_libtorch_for_cuda() { return libtorch_for_cuda().describe(); }

}  // namespace satrap::dense
