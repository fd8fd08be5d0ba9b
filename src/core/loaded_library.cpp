#include "satrap/core/loaded_library.h"

#include <dlfcn.h>

#include "satrap/core/error.h"

namespace satrap {

void* open_library(const LoadedLibrary& library) {
  void* const opened = dlopen(library.file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const entry = opened == nullptr ? nullptr : dlsym(opened, library.entry.c_str());
  if (entry != nullptr) return entry;
  const char* const reason = dlerror();
  throw Error(ErrorCode::kUnavailable,
              concat(library.file, ", which is needed for ", library.needed_for,
                     ", cannot be opened: ", reason == nullptr ? "unknown reason" : reason, "; ",
                     library.remedy));
}

}  // namespace satrap
