// NCCL's functions: they check arguments, and collect the calls of a group.
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <nccl.h>

#include "tests/support/simt/device.h"
#include "tests/support/simt/nccl_communicator.h"
#include "tests/support/simt/nccl_sum.h"
#include "tests/support/simt/turns.h"

struct ncclComm {};

namespace {

using simt::Call;
using simt::Communicator;
using simt::Fault;

thread_local std::string error_text;

ncclResult_t refuse(ncclResult_t result, std::string why) {
  error_text = std::move(why);
  return result;
}

/// The communicators of the program, by handle. A handle that has been destroyed or aborted stays
/// unknown: none is used twice.
class Handles {
 public:
  ncclComm_t add(std::shared_ptr<Communicator> communicator) {
    const std::lock_guard lock(mutex_);
    handles_.push_back(std::make_unique<ncclComm>());
    communicators_[handles_.back().get()] = std::move(communicator);
    return handles_.back().get();
  }
  std::shared_ptr<Communicator> find(ncclComm_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = communicators_.find(handle);
    return found == communicators_.end() ? nullptr : found->second;
  }
  std::shared_ptr<Communicator> take(ncclComm_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = communicators_.extract(handle);
    return found.empty() ? nullptr : found.mapped();
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<ncclComm>> handles_;
  std::map<ncclComm_t, std::shared_ptr<Communicator>> communicators_;
};

Handles& handles() {
  static Handles& instance = *new Handles;  // threads may outlive main()
  return instance;
}

ncclResult_t refuse_handle() {
  return refuse(ncclInvalidArgument, "no communicator: null, destroyed or aborted");
}

/// As ncclCommEnsureReady: after an error, and before the last call has ended, there is no other.
ncclResult_t check_ready(Communicator& communicator) {
  const ncclResult_t status = communicator.status();
  if (status != ncclInProgress) return status;
  return refuse(ncclInvalidArgument,
                "Attempt to use communicator before the previous operation returned ncclSuccess");
}

// ----------------------------------------------------------------------------------------- groups

struct Group {
  struct Calls {
    std::shared_ptr<Communicator> communicator;
    cudaStream_t stream = nullptr;
    std::vector<Call> calls;
  };
  int depth = 0;
  std::vector<Calls> calls;
  ncclResult_t error = ncclSuccess;

  void add(std::shared_ptr<Communicator> communicator, cudaStream_t stream, const Call& call) {
    for (Calls& other : calls) {
      if (other.communicator != communicator) continue;
      if (other.stream != stream) {
        throw Fault("a group uses one communicator on two streams: not simulated");
      }
      other.calls.push_back(call);
      return;
    }
    calls.push_back({std::move(communicator), stream, {call}});
  }
};

thread_local Group group;

ncclResult_t remember(ncclResult_t result) {
  if (group.depth > 0 && result != ncclSuccess) group.error = result;
  return result;
}

// ----------------------------------------------------------------------------------------- checks

/// Device memory of its device, or pinned memory.
void check_memory(const Communicator& communicator, const std::byte* data, std::size_t bytes) {
  const simt::Turn turn(simt::turns());
  const auto address = std::bit_cast<std::uintptr_t>(data);
  const simt::Allocation* const found = simt::devices().memory().find(address);
  const std::string who = "NCCL of rank " + std::to_string(communicator.rank()) + ": " +
                          std::to_string(bytes) + " bytes ";
  if (found == nullptr) throw Fault(who + "of memory that is not of a device, nor pinned");
  if (bytes > found->begin + found->bytes - address) {
    throw Fault(who + "from byte " + std::to_string(address - found->begin) +
                " of an allocation of " + std::to_string(found->bytes));
  }
  if (found->kind == simt::Allocation::Kind::kDevice && found->device != communicator.device()) {
    throw Fault(who + "of device " + std::to_string(found->device) + ", not of its device " +
                std::to_string(communicator.device()));
  }
}

void check_stream(const Communicator& communicator, cudaStream_t stream) {
  if (stream == nullptr || stream->device == communicator.device()) return;
  throw Fault("NCCL of rank " + std::to_string(communicator.rank()) + ": a stream of device " +
              std::to_string(stream->device) + ", and its device is " +
              std::to_string(communicator.device()));
}

/// Only the documented use in place.
void check_overlap(const Communicator& communicator, const Call& call) {
  if (!call.is_collective()) return;
  const bool gathers = call.what == Call::What::kAllGather;
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const auto num_ranks = static_cast<std::size_t>(communicator.num_ranks());
  const std::size_t bytes = call.bytes(), to_bytes = gathers ? num_ranks * bytes : bytes;
  if (call.from == (gathers ? call.to + rank * bytes : call.to)) return;
  if (call.from + bytes <= call.to || call.to + to_bytes <= call.from) return;
  throw Fault("NCCL of rank " + std::to_string(communicator.rank()) +
              ": the buffers of a collective overlap, but are not in place");
}

ncclResult_t enqueue(ncclComm_t handle, cudaStream_t stream, const Call& call) {
  const auto communicator = handles().find(handle);
  if (communicator == nullptr) return remember(refuse_handle());
  if (const ncclResult_t result = check_ready(*communicator); result != ncclSuccess) {
    return remember(result);
  }
  if (simt::size_of(call.type) == 0) return remember(refuse(ncclInvalidArgument, "unknown type"));
  if (call.reduction != ncclSum) {
    return remember(refuse(ncclInvalidArgument, "only ncclSum is simulated"));
  }
  if (!call.is_collective() && (call.peer < 0 || call.peer >= communicator->num_ranks())) {
    return remember(refuse(ncclInvalidArgument, "no rank " + std::to_string(call.peer)));
  }
  if (call.count > 0) {
    const std::size_t num_parts = call.what == Call::What::kAllGather
                                      ? static_cast<std::size_t>(communicator->num_ranks())
                                      : 1;
    if (call.what != Call::What::kReceive) check_memory(*communicator, call.from, call.bytes());
    if (call.what != Call::What::kSend) {
      check_memory(*communicator, call.to, num_parts * call.bytes());
    }
  } else if (call.is_collective()) {
    return ncclSuccess;
  }
  check_stream(*communicator, stream);
  check_overlap(*communicator, call);
  if (group.depth == 0) return communicator->issue({call}, stream);
  group.add(communicator, stream, call);
  return ncclSuccess;
}

const std::byte* bytes_at(const void* address) { return static_cast<const std::byte*>(address); }
std::byte* bytes_at(void* address) { return static_cast<std::byte*>(address); }

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclNumResults:
      break;
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t comm) {
  if (const auto communicator = handles().find(comm)) {
    if (std::string error = communicator->last_error(); !error.empty()) {
      error_text = std::move(error);
    }
  }
  return error_text.c_str();
}

// ------------------------------------------------------------------------------------
// communicators

/// A random name, and the seed of the sums' order.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  std::uint64_t seed = 0;
  {
    const simt::Turn turn(simt::turns());
    seed = simt::draw_stream(1024);
  }
  std::random_device random;
  std::snprintf(id->internal, sizeof(id->internal), "simt-nccl-%08x%08x%08x %llu", random(),
                random(), random(), static_cast<unsigned long long>(seed));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm,
                                    int num_ranks,
                                    ncclUniqueId id,
                                    int rank,
                                    ncclConfig_t* config) {
  *comm = nullptr;
  if (group.depth > 0) return refuse(ncclInvalidUsage, "in a group: not simulated");
  if (num_ranks < 1 || rank < 0 || rank >= num_ranks) {
    return refuse(ncclInvalidArgument, "Invalid rank requested : " + std::to_string(rank) + "/" +
                                           std::to_string(num_ranks));
  }
  const ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
  if (config != nullptr && (config->size != initial.size || config->magic != initial.magic)) {
    return refuse(ncclInvalidArgument, "ncclConfig_t argument not initialized");
  }
  const std::string text(id.internal, ::strnlen(id.internal, sizeof(id.internal)));
  const std::size_t blank = text.find(' ');
  if (!text.starts_with("simt-nccl-") || blank == std::string::npos) {
    return refuse(ncclInvalidArgument, "no unique id");
  }
  const int device = simt::current_device();
  const auto communicator = std::make_shared<Communicator>(
      text.substr(0, blank), std::strtoull(text.c_str() + blank, nullptr, 10),
      simt::Mesh::Hello{static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(num_ranks),
                        simt::device_of_machine(device)},
      device);
  communicator->blocking = config == nullptr || config->blocking != 0;
  *comm = handles().add(communicator);
  if (!communicator->blocking) return ncclInProgress;
  const ncclResult_t result = communicator->wait();
  if (result == ncclSuccess) return result;
  refuse(result, communicator->last_error());
  handles().take(*comm)->abort();
  *comm = nullptr;
  return result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const auto communicator = handles().find(comm);
  if (communicator == nullptr) return refuse_handle();
  *error = communicator->status();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const auto communicator = handles().find(comm);
  if (communicator == nullptr) return refuse_handle();
  if (const ncclResult_t result = check_ready(*communicator); result != ncclSuccess) return result;
  return communicator->finalize();
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  const auto communicator = handles().take(comm);
  if (communicator == nullptr) return refuse_handle();
  communicator->leave();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  const auto communicator = handles().take(comm);
  if (communicator == nullptr) return refuse_handle();
  communicator->abort();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  const auto communicator = handles().find(comm);
  if (communicator == nullptr) return refuse_handle();
  *count = communicator->num_ranks();
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  const auto communicator = handles().find(comm);
  if (communicator == nullptr) return refuse_handle();
  *rank = communicator->rank();
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  const auto communicator = handles().find(comm);
  if (communicator == nullptr) return refuse_handle();
  *device = communicator->device();
  return ncclSuccess;
}

// -------------------------------------------------------------------------------------- operations

ncclResult_t ncclAllReduce(const void* from,
                           void* to,
                           std::size_t count,
                           ncclDataType_t type,
                           ncclRedOp_t op,
                           ncclComm_t comm,
                           cudaStream_t stream) {
  return enqueue(comm, stream,
                 {.what = Call::What::kAllReduce,
                  .from = bytes_at(from),
                  .to = bytes_at(to),
                  .count = count,
                  .type = type,
                  .reduction = op});
}

ncclResult_t ncclAllGather(const void* from,
                           void* to,
                           std::size_t count,
                           ncclDataType_t type,
                           ncclComm_t comm,
                           cudaStream_t stream) {
  return enqueue(comm, stream,
                 {.what = Call::What::kAllGather,
                  .from = bytes_at(from),
                  .to = bytes_at(to),
                  .count = count,
                  .type = type});
}

ncclResult_t ncclSend(const void* from,
                      std::size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue(comm, stream,
                 {.what = Call::What::kSend,
                  .from = bytes_at(from),
                  .count = count,
                  .type = type,
                  .peer = peer});
}

ncclResult_t ncclRecv(void* to,
                      std::size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue(comm, stream,
                 {.what = Call::What::kReceive,
                  .to = bytes_at(to),
                  .count = count,
                  .type = type,
                  .peer = peer});
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) {
    return refuse(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  }
  if (--group.depth > 0) return ncclSuccess;
  const std::vector<Group::Calls> calls = std::move(group.calls);
  const ncclResult_t error = group.error;
  group = {};
  if (error != ncclSuccess) return error;
  ncclResult_t result = ncclSuccess;
  for (const auto& [communicator, stream, of_communicator] : calls) {
    const ncclResult_t issued = communicator->issue(of_communicator, stream);
    if (issued != ncclSuccess) result = issued;
  }
  return result;
}
