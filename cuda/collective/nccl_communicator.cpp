#include "cuda/collective/nccl_communicator.h"

#include <algorithm>
#include <utility>

#include "cuda/backend/check.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/thread_group.h"
#include "satrap/net/net_error.h"

namespace satrap::collective {
namespace {

using net::NetError;
using net::NetFailure;

constexpr std::chrono::microseconds kPoll(100);        // until NCCL has queued its kernels
constexpr std::chrono::milliseconds kWatchPeriod(20);  // of operations under way
constexpr std::chrono::seconds kGoodbye(2);

/// Values of each rank in a sum in order: rank r adds [r * slice, (r + 1) * slice).
std::int64_t slice_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

}  // namespace

NcclCommunicator::NcclCommunicator(const NcclLibrary& library,
                                   const ncclUniqueId& id,
                                   std::int64_t rank,
                                   std::int64_t size,
                                   backend::Device& device,
                                   const Options& options)
    : library_(library), rank_(rank), size_(size), device_(device), options_(options) {
  connect(id);
  thread_ = start_thread("nccl-watch", [this] { run_watch(); });
}

NcclCommunicator::~NcclCommunicator() {
  Lock lock(mutex_);
  changed_.wait_for(lock, kGoodbye, [&] { return error_ || under_way_.empty(); });
  is_stopping_ = true;
  changed_.notify_all();
  lock.unlock();
  thread_.join();
  if (comm_ == nullptr) return;
  ncclResult_t state = under_way_.empty() ? library_.comm_finalize(comm_) : ncclInternalError;
  const Clock::time_point deadline = Clock::now() + kGoodbye;
  lock.lock();
  while (state == ncclInProgress && Clock::now() < deadline) {
    changed_.wait_for(lock, kPoll);
    if (library_.comm_get_async_error(comm_, &state) != ncclSuccess) break;
  }
  static_cast<void>(state == ncclSuccess ? library_.comm_destroy(comm_)
                                         : library_.comm_abort(comm_));
}

void NcclCommunicator::connect(const ncclUniqueId& id) {
  device_.use_on_this_thread();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const auto deadline = Clock::now() + std::chrono::milliseconds(options_.timeout_ms);
  Lock lock(mutex_);
  const ncclResult_t result = library_.comm_init_rank_config(&comm_, static_cast<int>(size_), id,
                                                             static_cast<int>(rank_), &config);
  try {
    if (result != ncclInProgress) check(result, "ncclCommInitRankConfig");
    await_queued(lock, "the meeting of the ranks", deadline);
  } catch (...) {
    fail(std::current_exception());
    throw;
  }
}

// ------------------------------------------------------------------------------------ operations

void NcclCommunicator::queue(const char* name, const std::function<void()>& calls) {
  device_.use_on_this_thread();
  const auto deadline = Clock::now() + std::chrono::milliseconds(options_.timeout_ms);
  Lock lock(mutex_);
  throw_error();
  try {
    check(library_.group_start(), "ncclGroupStart");
    try {
      calls();
    } catch (...) {
      static_cast<void>(library_.group_end());
      throw;
    }
    const ncclResult_t result = library_.group_end();
    if (result != ncclInProgress) check(result, "ncclGroupEnd");
    await_queued(lock, name, deadline);
  } catch (...) {
    fail(std::current_exception());
    throw;
  }
}

void NcclCommunicator::check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw NetError(NetFailure::kClosed,
                 concat("NCCL: ", call, ": ", library_.get_error_string(result), " (",
                        library_.get_last_error(comm_), ")"));
}

void NcclCommunicator::await_queued(Lock& lock, const char* name, Clock::time_point deadline) {
  while (true) {
    throw_error();
    ncclResult_t state = ncclSuccess;
    check(library_.comm_get_async_error(comm_, &state), "ncclCommGetAsyncError");
    if (state == ncclSuccess) return;
    check(state, name);
    if (Clock::now() >= deadline) {
      throw NetError(NetFailure::kTimeout,
                     concat("NCCL: ", name, " could not begin within ", options_.timeout_ms,
                            " ms: another rank is late or gone"));
    }
    changed_.wait_for(lock, kPoll);
  }
}

/// Until the deadline the watch waits for what has been queued so far.
void NcclCommunicator::end_operation(const char* name, backend::StreamRef stream) {
  const Lock lock(mutex_);
  if (free_.empty()) free_.emplace_back(device_);
  Operation operation{std::move(free_.back()), name,
                      Clock::now() + std::chrono::milliseconds(options_.timeout_ms)};
  free_.pop_back();
  operation.done.record(stream);
  under_way_.push_back(std::move(operation));
  changed_.notify_all();
}

void NcclCommunicator::all_to_all(const float* to,
                                  std::span<const std::int64_t> to_counts,
                                  float* from,
                                  std::span<const std::int64_t> from_counts,
                                  backend::StreamRef stream) {
  SATRAP_CHECK(std::ssize(to_counts) == size_ && std::ssize(from_counts) == size_, to_counts.size(),
               " and ", from_counts.size(), " parts for ", size_, " ranks");
  constexpr const char* kName = "an all-to-all";
  cudaStream_t const native = backend::native(stream);
  const float *next_to = to, *own_to = nullptr;
  float *next_from = from, *own_from = nullptr;
  queue(kName, [&] {
    for (std::int64_t r = 0; r < size_; ++r) {
      const std::int64_t num_to = to_counts[static_cast<std::size_t>(r)];
      const std::int64_t num_from = from_counts[static_cast<std::size_t>(r)];
      if (r == rank_) {
        SATRAP_CHECK(num_to == num_from, "rank ", r, " sends itself ", num_to, " values, and gets ",
                     num_from);
        own_to = next_to;
        own_from = next_from;
      } else {
        const int peer = static_cast<int>(r);
        if (num_to > 0) {
          check(library_.send(next_to, static_cast<std::size_t>(num_to), ncclFloat32, peer, comm_,
                              native),
                "ncclSend");
        }
        if (num_from > 0) {
          check(library_.recv(next_from, static_cast<std::size_t>(num_from), ncclFloat32, peer,
                              comm_, native),
                "ncclRecv");
        }
      }
      next_to += num_to;
      next_from += num_from;
    }
  });
  const std::int64_t own = to_counts[static_cast<std::size_t>(rank_)];
  if (own_to != own_from) {
    device_.copy(own_from, own_to, own * static_cast<std::int64_t>(sizeof(float)), stream);
  }
  end_operation(kName, stream);
}

void NcclCommunicator::all_reduce_sum(float* values,
                                      std::int64_t count,
                                      backend::StreamRef stream) {
  if (options_.in_order) return sum_in_order(values, count, stream);
  constexpr const char* kName = "a sum over the ranks";
  queue(kName, [&] {
    check(library_.all_reduce(values, values, static_cast<std::size_t>(count), ncclFloat32, ncclSum,
                              comm_, backend::native(stream)),
          "ncclAllReduce");
  });
  end_operation(kName, stream);
}

/// Each rank gets one slice of all ranks' values, adds them in the order of the ranks, and sends
/// the sums to all.
void NcclCommunicator::sum_in_order(float* values, std::int64_t count, backend::StreamRef stream) {
  const std::int64_t slice = slice_of(count, size_);
  const auto length = [&](std::int64_t r) {
    return std::clamp<std::int64_t>(count - r * slice, 0, slice);
  };
  backend::make_room(parts_, device_, backend::Place::kDevice,
                     size_ * slice * static_cast<std::int64_t>(sizeof(float)),
                     "the sum of the ranks' gradients");
  auto* const parts = reinterpret_cast<float*>(parts_.data());
  const std::int64_t mine = length(rank_);
  cudaStream_t const native = backend::native(stream);
  constexpr const char* kName = "a sum over the ranks";
  const auto with_others = [&](const auto& call) {
    queue(kName, [&] {
      for (std::int64_t r = 0; r < size_; ++r) {
        if (r != rank_) call(r, static_cast<int>(r));
      }
    });
  };
  const auto send = [&](const float* from, std::int64_t number, int peer) {
    if (number == 0) return;
    check(library_.send(from, static_cast<std::size_t>(number), ncclFloat32, peer, comm_, native),
          "ncclSend");
  };
  const auto receive = [&](float* to, std::int64_t number, int peer) {
    if (number == 0) return;
    check(library_.recv(to, static_cast<std::size_t>(number), ncclFloat32, peer, comm_, native),
          "ncclRecv");
  };
  with_others([&](std::int64_t r, int peer) {
    send(values + r * slice, length(r), peer);
    receive(parts + r * slice, mine, peer);
  });
  float* const sum = values + rank_ * slice;
  std::vector<const float*> added;
  for (std::int64_t r = 0; r < size_; ++r) added.push_back(r == rank_ ? sum : parts + r * slice);
  device_.add_in_order(added, mine, sum, stream);
  with_others([&](std::int64_t r, int peer) {
    send(sum, mine, peer);
    receive(values + r * slice, length(r), peer);
  });
  end_operation(kName, stream);
}

// ---------------------------------------------------------------------------------------- failures

void NcclCommunicator::throw_error() const {
  if (error_) std::rethrow_exception(error_);
}

void NcclCommunicator::throw_if_failed() const {
  const Lock lock(mutex_);
  throw_error();
}

void NcclCommunicator::close() {
  const Lock lock(mutex_);
  fail(std::make_exception_ptr(NetError(NetFailure::kClosed, "NCCL: closed by this rank")));
}

/// What is queued ends, with whatever is in its memory.
void NcclCommunicator::fail(std::exception_ptr error) {
  if (error_) return;
  error_ = std::move(error);
  if (comm_ != nullptr) static_cast<void>(library_.comm_abort(std::exchange(comm_, nullptr)));
  changed_.notify_all();
}

void NcclCommunicator::run_watch() {
  Lock lock(mutex_);
  try {
    device_.use_on_this_thread();
    while (!is_stopping_) {
      if (error_ || under_way_.empty()) {
        changed_.wait(lock, [&] { return is_stopping_ || (!error_ && !under_way_.empty()); });
        continue;
      }
      watch_oldest();
      changed_.wait_for(lock, kWatchPeriod, [&] { return is_stopping_; });
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

void NcclCommunicator::watch_oldest() {
  while (!under_way_.empty() && under_way_.front().done.is_reached()) {
    free_.push_back(std::move(under_way_.front().done));
    under_way_.pop_front();
    changed_.notify_all();
  }
  ncclResult_t state = ncclSuccess;
  check(library_.comm_get_async_error(comm_, &state), "ncclCommGetAsyncError");
  check(state, under_way_.empty() ? "a rank" : under_way_.front().name);
  if (under_way_.empty() || Clock::now() < under_way_.front().deadline) return;
  throw NetError(NetFailure::kTimeout,
                 concat("NCCL: ", under_way_.front().name, " was not done within ",
                        options_.timeout_ms, " ms: another rank is late or gone"));
}

}  // namespace satrap::collective
