#include "src/dense/libtorch.h"

#include <dlfcn.h>

#include "satrap/core/error.h"
#include "satrap/dense/dense_network.h"

namespace satrap::dense {
namespace {

// Beside the programs, in ../lib (CMAKE_BUILD_RPATH).
constexpr const char* kLibrary = "libsatrap_libtorch.so";

const Libtorch& open_library() {
  // Local: libtorch carries its own version of Gloo and other libraries that programs use.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  void* entry = library == nullptr ? nullptr : dlsym(library, "satrap_libtorch");
  if (entry == nullptr) {
    const char* reason = dlerror();
    throw Error(ErrorCode::kUnavailable,
                concat(kLibrary, ", which is needed for train.precision: bf16, model: torchscript ",
                       "and the export of a network, cannot be opened: ",
                       reason == nullptr ? "unknown reason" : reason,
                       "; it is built with satrap, in lib/ beside bin/"));
  }
  return *reinterpret_cast<const Libtorch* (*)()>(entry)();
}

}  // namespace

const Libtorch& libtorch() {
  static const Libtorch& opened = open_library();
  return opened;
}

std::string describe_libtorch() { return libtorch().describe(); }

}  // namespace satrap::dense
