// Replaces cuda/collective/nccl_library.cpp: the functions of the stand-in.
#include "cuda/collective/nccl_library.h"

namespace satrap::collective {

const NcclLibrary& nccl_library() {
  static const NcclLibrary library{.get_version = ncclGetVersion,
                                   .get_unique_id = ncclGetUniqueId,
                                   .comm_init_rank_config = ncclCommInitRankConfig,
                                   .comm_get_async_error = ncclCommGetAsyncError,
                                   .comm_finalize = ncclCommFinalize,
                                   .comm_destroy = ncclCommDestroy,
                                   .comm_abort = ncclCommAbort,
                                   .get_error_string = ncclGetErrorString,
                                   .get_last_error = ncclGetLastError,
                                   .all_reduce = ncclAllReduce,
                                   .send = ncclSend,
                                   .recv = ncclRecv,
                                   .group_start = ncclGroupStart,
                                   .group_end = ncclGroupEnd};
  return library;
}

}  // namespace satrap::collective
