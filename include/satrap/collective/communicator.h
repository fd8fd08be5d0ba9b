#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "satrap/net/deadline.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/net_error.h"
#include "satrap/net/rendezvous.h"

namespace satrap::collective {

/// The ranks of a job that work in step. Every rank calls the same functions in the same order with
/// the same sizes; each call blocks until its part is done.
///
/// They throw net::NetError: kTimeout at the deadline, kClosed if a rank has died, left, or
/// called another function, kProtocol if sizes differ. Every rank gets the error, after a death
/// within milliseconds. The communicator is then unusable, and the ranks make another one
/// under another name. One thread at a time.
///
/// Destroying it waits up to 2 seconds for the others to do the same, so that no rank's last call
/// is cut short, unless it has failed or an exception is being thrown.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::int64_t rank() const = 0;
  virtual std::int64_t size() const = 0;

  /// Replaces values[i] on every rank by the sum over the ranks, added in the order of the ranks
  /// ((v0 + v1) + v2 ...): the same bits on every rank, in every run, at any position.
  virtual void all_reduce_sum(std::span<float> values, net::Deadline deadline) = 0;
  virtual void all_reduce_sum(std::span<double> values, net::Deadline deadline) = 0;

  /// The same in parts, so that one sum is sent while another is added. All ranks begin reductions
  /// in the same order, also relative to other calls; then call add() and finish(), once each, both
  /// in the order of the begins. Beginning does not block. The communicator uses `values` until
  /// finish() has returned or the reduction is destroyed, which must happen before the communicator
  /// is destroyed. Destroying an unfinished reduction ends the communicator.
  class Reduction {
   public:
    virtual ~Reduction() = default;
    /// Waits for the others' values, adds them, and sends the sums.
    virtual void add(net::Deadline deadline) = 0;
    /// Waits for the others' sums.
    virtual void finish(net::Deadline deadline) = 0;
  };
  virtual std::unique_ptr<Reduction> begin_all_reduce_sum(std::span<float> values) = 0;

  /// Replaces the bytes on every rank by those of `root`.
  virtual void broadcast(std::span<std::byte> bytes, std::int64_t root, net::Deadline deadline) = 0;

  /// Every rank sends bytes to every rank: to[r] goes to rank r, from[r] comes from rank r, its own
  /// part included. Sizes may differ from pair to pair and may be 0; from[r] has the size that
  /// rank r sends.
  virtual void all_to_all(std::span<const std::span<const std::byte>> to,  // [size()]
                          std::span<const std::span<std::byte>> from,      // [size()]
                          net::Deadline deadline) = 0;

  /// Gathers the bytes of every rank, in the order of the ranks: `all` is size() times as long as
  /// `mine`, which has the same length on all ranks.
  void all_gather(std::span<const std::byte> mine,
                  std::span<std::byte> all,
                  net::Deadline deadline);

  /// Returns when every rank has called it.
  virtual void barrier(net::Deadline deadline) = 0;

  /// From any thread: calls in progress, here or on another rank, throw kClosed, and so does every
  /// later call.
  virtual void close() = 0;
};

/// The only rank of its group: every call returns at once, and there is nothing to close.
std::unique_ptr<Communicator> make_single_communicator();

/// Meets the other ranks in the store under `name`, which must be new: unique to the job's attempt
/// and to this group (a second group under a name is refused, with NetError(kRefused)). Uses a Gloo
/// connection between every two ranks. Throws NetError if not all have arrived by the deadline.
std::unique_ptr<Communicator> make_gloo_communicator(const net::Endpoint& endpoint,
                                                     net::Rendezvous& store,
                                                     const std::string& name,
                                                     std::int64_t rank,
                                                     std::int64_t size,
                                                     net::Deadline deadline);

}  // namespace satrap::collective
