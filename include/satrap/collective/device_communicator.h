#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include "satrap/backend/device.h"
#include "satrap/collective/communicator.h"

namespace satrap::collective {

/// The ranks of a job as their GPUs see them: collective operations on memory of a device, each in
/// its place in the order of a stream. Every rank calls the same functions in the same order, with
/// sizes that fit each other, on one stream. One thread at a time, except where it says any;
/// threads that take turns keep that order themselves (pipeline::StepDriver::wait_before_update).
///
/// A call queues its work and returns. What goes wrong after that (a rank that is dead, late, or
/// has called something else) is found by a thread of its own ("nccl-watch") within the deadline:
/// the operations that are queued then end, their outputs are undefined, and throw_if_failed() says
/// why. Whoever uses what was received asks it first.
class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;

  virtual std::int64_t rank() const = 0;
  virtual std::int64_t size() const = 0;

  /// Replaces values[i] by the sum over the ranks: the same bits on every rank, and with
  /// Options::in_order those of Communicator::all_reduce_sum.
  virtual void all_reduce_sum(float* values,  // device [count]
                              std::int64_t count,
                              backend::StreamRef stream) = 0;

  /// Sends to_counts[r] values to rank r and gets from_counts[r] from it, its own part included;
  /// each side in the order of the ranks, without gaps. from_counts[r] is what rank r sends.
  virtual void all_to_all(const float* to,                            // device
                          std::span<const std::int64_t> to_counts,    // [size()]
                          float* from,                                // device
                          std::span<const std::int64_t> from_counts,  // [size()]
                          backend::StreamRef stream) = 0;

  /// Throws if an operation has failed: net::NetError, kTimeout at the deadline, else kClosed; or
  /// what close() was given. It is then unusable, as each call says too. Any thread.
  virtual void throw_if_failed() const = 0;

  /// Ends all operations that are queued, here and, by their deadline, on the other ranks. From now
  /// on calls throw `why`, or without it that this rank has closed. Any thread.
  virtual void close(std::exception_ptr why = nullptr) = 0;

  struct Options {
    std::int64_t timeout_ms = 0;  // from the call that queues an operation to its end
    bool in_order = true;         // sums are added in the order of the ranks
  };
};

/// Over NCCL, for the ranks of `group`, each with a GPU of its own. All ranks call it; blocks until
/// it is ready. nullptr on all ranks if one of them cannot: `reason` then says why (two of them
/// have one GPU, there is no NCCL, or another version, or more ranks than can add in order). Throws
/// net::NetError at the deadline. `device` outlives it.
std::unique_ptr<DeviceCommunicator> make_device_communicator(
    Communicator& group,
    backend::Device& device,
    const DeviceCommunicator::Options& options,
    std::string& reason);

/// The version of NCCL, for `satrap doctor`. Throws Error(kUnavailable) if there is none.
std::string describe_nccl();

}  // namespace satrap::collective
