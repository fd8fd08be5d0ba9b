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
  MutexLock lock(mutex_);
  const Clock::time_point until = Clock::now() + kGoodbye;
  while (!error_ && !under_way_.empty() && changed_.wait_until(mutex_, until)) continue;
  is_stopping_ = true;
  changed_.notify_all();
  lock.unlock();
  thread_.join();
  lock.lock();
  if (comm_ == nullptr) return;
  ncclResult_t state = under_way_.empty() ? library_.comm_finalize(comm_) : ncclInternalError;
  const Clock::time_point deadline = Clock::now() + kGoodbye;
  while (state == ncclInProgress && Clock::now() < deadline) {
    changed_.wait_until(mutex_, Clock::now() + kPoll);
    if (library_.comm_get_async_error(comm_, &state) != ncclSuccess) break;
  }
  static_cast<void>(state == ncclSuccess ? library_.comm_destroy(comm_)
                                         : library_.comm_abort(comm_));
}

void NcclCommunicator::connect(const ncclUniqueId& id) {
  device_.use_on_this_thread();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const Begun begun{"the meeting of the ranks",
                    Clock::now() + std::chrono::milliseconds(options_.timeout_ms), nullptr};
  const MutexLock lock(mutex_);
  try {
    check(library_.comm_init_rank_config(&comm_, static_cast<int>(size_), id,
                                         static_cast<int>(rank_), &config),
          "ncclCommInitRankConfig");
    await_queued(begun);
  } catch (...) {
    fail(std::current_exception());
    throw;
  }
}

// ------------------------------------------------------------------------------------ operations

template <class QueueAll>
void NcclCommunicator::operate(const char* name, backend::StreamRef stream, QueueAll queue_all) {
  device_.use_on_this_thread();
  const Begun begun{name, Clock::now() + std::chrono::milliseconds(options_.timeout_ms),
                    backend::native(stream)};
  try {
    queue_all(begun);
    watch(begun);
  } catch (...) {
    const MutexLock lock(mutex_);
    fail(std::current_exception());
    throw;
  }
}

template <class Calls>
void NcclCommunicator::queue(const Begun& begun, Calls calls) {
  const MutexLock lock(mutex_);
  throw_error();
  check(library_.group_start(), "ncclGroupStart");
  try {
    calls();
  } catch (...) {
    static_cast<void>(library_.group_end());
    throw;
  }
  check(library_.group_end(), "ncclGroupEnd");
  await_queued(begun);
}

void NcclCommunicator::send(const float* from,
                            std::int64_t count,
                            std::int64_t rank,
                            const Begun& begun) {
  if (count == 0) return;
  check(library_.send(from, static_cast<std::size_t>(count), ncclFloat32, static_cast<int>(rank),
                      comm_, begun.stream),
        "ncclSend");
}

void NcclCommunicator::receive(float* to,
                               std::int64_t count,
                               std::int64_t rank,
                               const Begun& begun) {
  if (count == 0) return;
  check(library_.recv(to, static_cast<std::size_t>(count), ncclFloat32, static_cast<int>(rank),
                      comm_, begun.stream),
        "ncclRecv");
}

void NcclCommunicator::check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw NetError(NetFailure::kClosed,
                 concat("NCCL: ", call, ": ", library_.get_error_string(result), " (",
                        library_.get_last_error(comm_), ")"));
}

void NcclCommunicator::await_queued(const Begun& begun) {
  while (true) {
    throw_error();
    ncclResult_t state = ncclSuccess;
    check(library_.comm_get_async_error(comm_, &state), "ncclCommGetAsyncError");
    if (state == ncclSuccess) return;
    check(state, begun.name);
    if (Clock::now() >= begun.deadline) {
      throw NetError(NetFailure::kTimeout,
                     concat("NCCL: ", begun.name, " could not begin within ", options_.timeout_ms,
                            " ms: another rank is late or gone"));
    }
    changed_.wait_until(mutex_, Clock::now() + kPoll);
  }
}

/// The work that has been queued so far must be done by the deadline.
void NcclCommunicator::watch(const Begun& begun) {
  const MutexLock lock(mutex_);
  if (free_.empty()) free_.emplace_back(device_);
  free_.back().record({begun.stream});
  under_way_.push_back({std::move(free_.back()), begun.name, begun.deadline});
  free_.pop_back();
  changed_.notify_all();
}

void NcclCommunicator::all_to_all(const float* to,
                                  std::span<const std::int64_t> to_counts,
                                  float* from,
                                  std::span<const std::int64_t> from_counts,
                                  backend::StreamRef stream) {
  SATRAP_CHECK(std::ssize(to_counts) == size_ && std::ssize(from_counts) == size_, to_counts.size(),
               " and ", from_counts.size(), " parts for ", size_, " ranks");
  const auto me = static_cast<std::size_t>(rank_);
  SATRAP_CHECK(to_counts[me] == from_counts[me], "rank ", rank_, " sends itself ", to_counts[me],
               " values, and gets ", from_counts[me]);
  operate("an all-to-all", stream, [&](const Begun& begun) {
    const float *next_to = to, *own_to = nullptr;
    float *next_from = from, *own_from = nullptr;
    queue(begun, [&]() SATRAP_REQUIRES(mutex_) {
      for (std::int64_t r = 0; r < size_; ++r) {
        const std::int64_t num_to = to_counts[static_cast<std::size_t>(r)];
        const std::int64_t num_from = from_counts[static_cast<std::size_t>(r)];
        if (r == rank_) {
          own_to = next_to;
          own_from = next_from;
        } else {
          send(next_to, num_to, r, begun);
          receive(next_from, num_from, r, begun);
        }
        next_to += num_to;
        next_from += num_from;
      }
    });
    device_.copy(own_from, own_to, to_counts[me] * static_cast<std::int64_t>(sizeof(float)),
                 stream);
  });
}

void NcclCommunicator::all_reduce_sum(float* values,
                                      std::int64_t count,
                                      backend::StreamRef stream) {
  operate("a sum over the ranks", stream, [&](const Begun& begun) {
    if (options_.in_order) return sum_in_order(values, count, begun);
    queue(begun, [&]() SATRAP_REQUIRES(mutex_) {
      check(library_.all_reduce(values, values, static_cast<std::size_t>(count), ncclFloat32,
                                ncclSum, comm_, begun.stream),
            "ncclAllReduce");
    });
  });
}

/// Each rank gets one slice of all ranks' values, adds them in the order of the ranks, and sends
/// the sums to all.
void NcclCommunicator::sum_in_order(float* values, std::int64_t count, const Begun& begun) {
  const std::int64_t slice = slice_of(count, size_);
  const auto length = [&](std::int64_t r) {
    return std::clamp<std::int64_t>(count - r * slice, 0, slice);
  };
  backend::make_room(parts_, device_, backend::Place::kDevice,
                     size_ * slice * static_cast<std::int64_t>(sizeof(float)),
                     "the sum of the ranks' gradients");
  auto* const parts = reinterpret_cast<float*>(parts_.data());
  const std::int64_t mine = length(rank_);
  float* const sum = values + std::min(rank_ * slice, count);
  const auto with_others = [&](const auto& exchange) {
    queue(begun, [&]() SATRAP_REQUIRES(mutex_) {
      for (std::int64_t r = 0; r < size_; ++r) {
        if (r != rank_) exchange(r);
      }
    });
  };
  with_others([&](std::int64_t r) SATRAP_REQUIRES(mutex_) {
    send(values + std::min(r * slice, count), length(r), r, begun);
    receive(parts + r * slice, mine, r, begun);
  });
  added_.clear();
  for (std::int64_t r = 0; r < size_; ++r) added_.push_back(r == rank_ ? sum : parts + r * slice);
  device_.add_in_order({added_, mine, sum}, {begun.stream});
  with_others([&](std::int64_t r) SATRAP_REQUIRES(mutex_) {
    send(sum, mine, r, begun);
    receive(values + std::min(r * slice, count), length(r), r, begun);
  });
}

// ---------------------------------------------------------------------------------------- failures

void NcclCommunicator::throw_error() const {
  if (error_) std::rethrow_exception(error_);
}

void NcclCommunicator::throw_if_failed() const {
  const MutexLock lock(mutex_);
  throw_error();
}

void NcclCommunicator::close(std::exception_ptr why) {
  if (!why) {
    why = std::make_exception_ptr(NetError(NetFailure::kClosed, "NCCL: closed by this rank"));
  }
  const MutexLock lock(mutex_);
  fail(std::move(why));
}

/// Queued work ends, with whatever is in its memory.
void NcclCommunicator::fail(std::exception_ptr error) {
  if (error_) return;
  error_ = std::move(error);
  if (comm_ != nullptr) static_cast<void>(library_.comm_abort(std::exchange(comm_, nullptr)));
  changed_.notify_all();
}

void NcclCommunicator::run_watch() {
  MutexLock lock(mutex_);
  while (true) {
    while (!is_stopping_ && (error_ || under_way_.empty())) changed_.wait(mutex_);
    if (is_stopping_) return;
    const backend::Event& oldest = under_way_.front().done;  // nobody else takes it away
    bool is_done = false;
    std::exception_ptr error;
    lock.unlock();  // CUDA may make the watch wait for another thread's call
    try {
      device_.use_on_this_thread();
      is_done = oldest.is_reached();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    try {
      if (error) std::rethrow_exception(error);
      if (watch_oldest(is_done)) continue;
    } catch (...) {
      fail(std::current_exception());
    }
    const Clock::time_point until = Clock::now() + kWatchPeriod;
    while (!is_stopping_ && changed_.wait_until(mutex_, until)) continue;
  }
}

/// Returns `is_done`: whether the oldest is.
bool NcclCommunicator::watch_oldest(bool is_done) {
  if (error_) return false;
  const Operation& operation = under_way_.front();
  ncclResult_t state = ncclSuccess;
  check(library_.comm_get_async_error(comm_, &state), "ncclCommGetAsyncError");
  check(state, operation.name);
  if (is_done) {
    free_.push_back(std::move(under_way_.front().done));
    under_way_.pop_front();
    changed_.notify_all();
  } else if (Clock::now() >= operation.deadline) {
    throw NetError(NetFailure::kTimeout,
                   concat("NCCL: ", operation.name, " was not done within ", options_.timeout_ms,
                          " ms: another rank is late or gone"));
  }
  return is_done;
}

}  // namespace satrap::collective
