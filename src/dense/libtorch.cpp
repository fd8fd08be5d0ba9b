#include "src/dense/libtorch.h"

#include <cstdlib>
#include <string>

#include <dlfcn.h>

#include "satrap/core/error.h"
#include "satrap/core/torch_folder.h"
#include "satrap/dense/dense_network.h"

namespace satrap::dense {
namespace {

/// One of satrap's libraries that are linked with libtorch. Programs find it by their RPATH
/// (cmake/Options.cmake).
struct Linked {
  const char* name;
  const char* with;  // the library of PyTorch that has all others that it needs
  const char* needed_for;
  const char* remedy;
};

// Local: libtorch carries its own version of Gloo and other libraries that programs use.
void* open_local(const std::string& name) { return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); }

std::string why_not_opened() {
  const char* const error = dlerror();
  return error == nullptr ? "unknown reason" : error;
}

/// Opens a library of PyTorch for those that are linked with it, which find it by its name. Returns
/// why it could not, or "".
std::string open_torch(const char* name) {
  try {
    return open_local(torch_folder() / "lib" / name) == nullptr ? why_not_opened() : "";
  } catch (const Error& error) {
    return error.what();
  }
}

[[noreturn]] void refuse(const Linked& library, const std::string& why) {
  throw Error(ErrorCode::kUnavailable, concat(library.name, ", which is needed for ",
                                              library.needed_for, ", cannot be opened: ", why));
}

/// In its build folder a library finds PyTorch by itself, unless the user has named another.
const Libtorch& open_library(const Linked& library) {
  const char* const given = std::getenv("SATRAP_TORCH_DIR");
  const bool is_given = given != nullptr && *given != '\0';
  void* opened = is_given ? nullptr : open_local(library.name);
  if (opened == nullptr) {
    const std::string alone = is_given ? "" : why_not_opened() + "; ";
    if (const std::string why = open_torch(library.with); !why.empty())
      refuse(library, alone + why);
    opened = open_local(library.name);
  }
  void* const entry = opened == nullptr ? nullptr : dlsym(opened, "satrap_libtorch");
  if (entry == nullptr) refuse(library, concat(why_not_opened(), "; ", library.remedy));
  return *reinterpret_cast<const Libtorch* (*)()>(entry)();
}

}  // namespace

const Libtorch& libtorch() {
  static const Libtorch& opened =
      open_library({.name = "libsatrap_libtorch.so",
                    .with = "libtorch_cpu.so",
                    .needed_for = "train.precision: bf16, model: torchscript, model.engine: graph "
                                  "and the export of a network",
                    .remedy = "it is built and installed with satrap"});
  return opened;
}

const Libtorch& libtorch_for_cuda() {
  static const Libtorch& opened =
      open_library({.name = "libsatrap_libtorch_cuda.so",
                    .with = "libtorch_cuda.so",
                    .needed_for = "a dense network on a GPU",
                    .remedy = "a build with CUDA has it, and needs the libraries of PyTorch with "
                              "CUDA; model.engine: native computes the network on the CPU"});
  return opened;
}

std::string describe_libtorch() { return libtorch().describe(); }
std::string describe_libtorch_for_cuda() { return libtorch_for_cuda().describe(); }

}  // namespace satrap::dense
