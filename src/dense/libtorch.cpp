#include "src/dense/libtorch.h"

#include <dlfcn.h>

#include "satrap/core/error.h"
#include "satrap/dense/dense_network.h"

namespace satrap::dense {
namespace {

/// `library` is beside the programs, in ../lib (CMAKE_BUILD_RPATH).
const Libtorch& open_library(const char* library, const char* needed_for, const char* remedy) {
  // Local: libtorch carries its own version of Gloo and other libraries that programs use.
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* const entry = opened == nullptr ? nullptr : dlsym(opened, "satrap_libtorch");
  if (entry == nullptr) {
    const char* const reason = dlerror();
    throw Error(ErrorCode::kUnavailable,
                concat(library, ", which is needed for ", needed_for, ", cannot be opened: ",
                       reason == nullptr ? "unknown reason" : reason, "; ", remedy));
  }
  return *reinterpret_cast<const Libtorch* (*)()>(entry)();
}

}  // namespace

const Libtorch& libtorch() {
  static const Libtorch& opened =
      open_library("libsatrap_libtorch.so",
                   "train.precision: bf16, model: torchscript, model.engine: graph and the export "
                   "of a network",
                   "it is built with satrap, in lib/ beside bin/");
  return opened;
}

const Libtorch& libtorch_for_cuda() {
  static const Libtorch& opened =
      open_library("libsatrap_libtorch_cuda.so", "a dense network on a GPU",
                   "a build with CUDA has it in lib/ beside bin/, and needs the libraries of "
                   "PyTorch with CUDA; model.engine: native computes the network on the CPU");
  return opened;
}

std::string describe_libtorch() { return libtorch().describe(); }
std::string describe_libtorch_for_cuda() { return libtorch_for_cuda().describe(); }

}  // namespace satrap::dense
