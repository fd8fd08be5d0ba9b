#include "src/dense/libtorch.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/loaded_library.h"
#include "satrap/core/torch_folder.h"
#include "satrap/dense/dense_network.h"

namespace satrap::dense {
namespace {

std::string open_torch(const std::string& name) {
  try {
    return open_needed_library(torch_folder() / "lib" / name);
  } catch (const Error& error) {
    return error.what();
  }
}

/// `torch`: the library of PyTorch that has all others that `library` needs. In its build folder
/// `library` finds it by itself, unless the user has named another.
const Libtorch& open(LoadedLibrary library, const std::string& torch) {
  const char* const given = std::getenv("SATRAP_TORCH_DIR");
  library.entry = "satrap_libtorch";
  library.open_needed = [torch] { return open_torch(torch); };
  library.opens_needed_first = given != nullptr && *given != '\0';
  return *reinterpret_cast<const Libtorch* (*)()>(open_library(library))();
}

}  // namespace

const Libtorch& libtorch() {
  static const Libtorch& opened = open(
      {.file = "libsatrap_libtorch.so",
       .entry = "",
       .needed_for =
           "train.precision: bf16 on this CPU, model: torchscript, model.engine: graph and the "
           "export of a network as TorchScript",
       .remedy = "it is built and installed with satrap"},
      "libtorch_cpu.so");
  return opened;
}

const Libtorch& libtorch_for_cuda() {
  static const Libtorch& opened =
      open({.file = "libsatrap_libtorch_cuda.so",
            .entry = "",
            .needed_for = "a dense network on a GPU",
            .remedy = "a build with CUDA has it, and needs the libraries of PyTorch with CUDA; "
                      "model.engine: native computes the network on the CPU"},
           "libtorch_cuda.so");
  return opened;
}

std::string describe_libtorch() { return libtorch().describe(); }
std::string describe_libtorch_for_cuda() { return libtorch_for_cuda().describe(); }

}  // namespace satrap::dense
