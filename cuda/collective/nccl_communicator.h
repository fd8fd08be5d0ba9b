#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cuda/collective/nccl_library.h"
#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"
#include "satrap/collective/device_communicator.h"
#include "satrap/core/mutex.h"

namespace satrap::collective {

/// A DeviceCommunicator over NCCL. NCCL's own is not blocking: its calls return at once, and no
/// thread is inside one when another ends it. Every operation ends in an event; the thread
/// "nccl-watch" looks whether it comes in time, and asks NCCL for errors. An operation that could
/// not be queued whole ends all.
class NcclCommunicator final : public DeviceCommunicator {
 public:
  /// Blocks until all ranks are connected. Throws net::NetError.
  NcclCommunicator(const NcclLibrary& library,
                   const ncclUniqueId& id,
                   std::int64_t rank,
                   std::int64_t size,
                   backend::Device& device,
                   const Options& options);

  /// Waits up to 2 seconds for what is queued, unless it has failed.
  ~NcclCommunicator() override;

  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return size_; }
  void all_reduce_sum(float* values, std::int64_t count, backend::StreamRef stream) override;
  void all_to_all(const float* to,
                  std::span<const std::int64_t> to_counts,
                  float* from,
                  std::span<const std::int64_t> from_counts,
                  backend::StreamRef stream) override;
  void throw_if_failed() const override;
  void close(std::exception_ptr why) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Operation {
    backend::Event done;
    const char* name;
    Clock::time_point deadline;
  };

  void connect(const ncclUniqueId& id);
  void run_watch();
  bool watch_oldest(bool is_done) SATRAP_REQUIRES(mutex_);

  /// Runs queue_all(begun), and then watches what it has queued.
  struct Begun {
    const char* name;
    Clock::time_point deadline;
    cudaStream_t stream;
  };
  template <class QueueAll>
  void operate(const char* name, backend::StreamRef stream, QueueAll queue_all);
  /// Queues NCCL's calls of one group, and waits until NCCL has queued their kernels.
  template <class Calls>
  void queue(const Begun& begun, Calls calls);
  void send(const float* from, std::int64_t count, std::int64_t rank, const Begun& begun)
      SATRAP_REQUIRES(mutex_);
  void receive(float* to, std::int64_t count, std::int64_t rank, const Begun& begun)
      SATRAP_REQUIRES(mutex_);
  void check(ncclResult_t result, const char* call) SATRAP_REQUIRES(mutex_);
  void await_queued(const Begun& begun) SATRAP_REQUIRES(mutex_);
  void watch(const Begun& begun);
  void sum_in_order(float* values, std::int64_t count, const Begun& begun);

  void fail(std::exception_ptr error) SATRAP_REQUIRES(mutex_);
  void throw_error() const SATRAP_REQUIRES(mutex_);  // if there is one

  const NcclLibrary& library_;
  const std::int64_t rank_, size_;
  backend::Device& device_;
  const Options options_;

  mutable Mutex mutex_;  // guards NCCL, too
  CondVar changed_;
  ncclComm_t comm_ SATRAP_GUARDED_BY(mutex_) = nullptr;  // nullptr: ended
  std::exception_ptr error_ SATRAP_GUARDED_BY(mutex_);
  bool is_stopping_ SATRAP_GUARDED_BY(mutex_) = false;
  std::deque<Operation> under_way_ SATRAP_GUARDED_BY(mutex_);
  std::vector<backend::Event> free_ SATRAP_GUARDED_BY(mutex_);

  // For a sum in order: parts of the other ranks, and where each rank's part is.
  backend::Memory parts_;
  std::vector<const float*> added_;  // [size]
  std::thread thread_;
};

}  // namespace satrap::collective
