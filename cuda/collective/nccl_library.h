#pragma once

#include <string>

#include <nccl.h>

namespace satrap::collective {

/// The functions of NCCL. Its library has 200 MB, and one GPU needs none of it, so that it is
/// opened when it is first needed.
struct NcclLibrary {
  decltype(&::ncclGetVersion) get_version;
  decltype(&::ncclGetUniqueId) get_unique_id;
  decltype(&::ncclCommInitRankConfig) comm_init_rank_config;
  decltype(&::ncclCommGetAsyncError) comm_get_async_error;
  decltype(&::ncclCommFinalize) comm_finalize;
  decltype(&::ncclCommDestroy) comm_destroy;
  decltype(&::ncclCommAbort) comm_abort;
  decltype(&::ncclGetErrorString) get_error_string;
  decltype(&::ncclGetLastError) get_last_error;
  decltype(&::ncclAllReduce) all_reduce;
  decltype(&::ncclSend) send;
  decltype(&::ncclRecv) recv;
  decltype(&::ncclGroupStart) group_start;
  decltype(&::ncclGroupEnd) group_end;
};

/// Throws Error(kUnavailable) if it cannot be opened or lacks one of them.
const NcclLibrary& nccl_library();

}  // namespace satrap::collective
