#include "satrap/core/loaded_library.h"

#include <dlfcn.h>

#include "satrap/core/error.h"

namespace satrap {
namespace {

void* open_local(const std::string& file) { return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); }

std::string why_not_opened() {
  const char* const reason = dlerror();
  return reason == nullptr ? "unknown reason" : reason;
}

[[noreturn]] void refuse(const LoadedLibrary& library, const std::string& why) {
  throw Error(ErrorCode::kUnavailable, concat(library.file, ", which is needed for ",
                                              library.needed_for, ", cannot be opened: ", why));
}

}  // namespace

void* open_library(const LoadedLibrary& library) {
  void* opened = library.opens_needed_first ? nullptr : open_local(library.file);
  if (opened == nullptr && library.open_needed) {
    const std::string alone = library.opens_needed_first ? "" : why_not_opened() + "; ";
    if (const std::string why = library.open_needed(); !why.empty()) refuse(library, alone + why);
    opened = open_local(library.file);
  }
  void* const entry = opened == nullptr ? nullptr : dlsym(opened, library.entry.c_str());
  if (entry == nullptr) refuse(library, concat(why_not_opened(), "; ", library.remedy));
  return entry;
}

std::string open_needed_library(const std::string& file) {
  return open_local(file) == nullptr ? why_not_opened() : "";
}

}  // namespace satrap
