#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cuda/collective/nccl_library.h"
#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"
#include "satrap/collective/device_communicator.h"

namespace satrap::collective {

/// A DeviceCommunicator over NCCL. NCCL's own is not blocking: its calls return at once, and no
/// thread is inside one when another ends it. Every operation is followed by an event; the thread
/// "nccl-watch" looks whether it comes in time, and asks NCCL for errors.
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
  void close() override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Clock = std::chrono::steady_clock;
  struct Operation {
    backend::Event done;
    const char* name;
    Clock::time_point deadline;
  };

  void connect(const ncclUniqueId& id);
  void run_watch();
  void watch_oldest();

  /// Queues NCCL's calls of one group, and waits until NCCL has queued their kernels.
  void queue(const char* name, const std::function<void()>& calls);
  void check(ncclResult_t result, const char* call);
  void await_queued(Lock& lock, const char* name, Clock::time_point deadline);
  void end_operation(const char* name, backend::StreamRef stream);
  void sum_in_order(float* values, std::int64_t count, backend::StreamRef stream);

  void fail(std::exception_ptr error);  // with the lock
  void throw_error() const;             // with the lock, if there is one

  const NcclLibrary& library_;
  const std::int64_t rank_, size_;
  backend::Device& device_;
  const Options options_;

  mutable std::mutex mutex_;  // guards what follows, and NCCL
  std::condition_variable changed_;
  ncclComm_t comm_ = nullptr;  // nullptr: ended
  std::exception_ptr error_;
  bool is_stopping_ = false;
  std::deque<Operation> under_way_;
  std::vector<backend::Event> free_;

  backend::Memory parts_;  // of the other ranks, for a sum in order
  std::thread thread_;
};

}  // namespace satrap::collective
