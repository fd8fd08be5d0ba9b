#include "cuda/collective/nccl_library.h"

#include <string>

#include <dlfcn.h>

#include "satrap/core/error.h"
#include "satrap/core/torch_folder.h"

namespace satrap::collective {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw Error(ErrorCode::kUnavailable, concat("libnccl.so.2 has no ", name, ": it is too old"));
  }
}

/// The system's or the build's; else that of PyTorch's wheels.
void* open_shared_library() {
  if (void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL)) return library;
  const std::string reason = dlerror();
  const auto wheel = torch_folder().parent_path() / "nvidia/nccl/lib/libnccl.so.2";
  if (void* const library = dlopen(wheel.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  throw Error(ErrorCode::kUnavailable, concat("NCCL cannot be opened: ", reason, "; ", dlerror()));
}

NcclLibrary open_library() {
  void* const library = open_shared_library();
  NcclLibrary found{};
  find(library, "ncclGetVersion", found.get_version);
  find(library, "ncclGetUniqueId", found.get_unique_id);
  find(library, "ncclCommInitRankConfig", found.comm_init_rank_config);
  find(library, "ncclCommGetAsyncError", found.comm_get_async_error);
  find(library, "ncclCommFinalize", found.comm_finalize);
  find(library, "ncclCommDestroy", found.comm_destroy);
  find(library, "ncclCommAbort", found.comm_abort);
  find(library, "ncclGetErrorString", found.get_error_string);
  find(library, "ncclGetLastError", found.get_last_error);
  find(library, "ncclAllReduce", found.all_reduce);
  find(library, "ncclSend", found.send);
  find(library, "ncclRecv", found.recv);
  find(library, "ncclGroupStart", found.group_start);
  find(library, "ncclGroupEnd", found.group_end);
  return found;
}

}  // namespace

const NcclLibrary& nccl_library() {
  static const NcclLibrary library = open_library();  // stays open
  return library;
}

}  // namespace satrap::collective
