#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "satrap/backend/stream_times.h"
#include "satrap/collective/communicator.h"
#include "satrap/collective/device_communicator.h"
#include "satrap/core/stage_timer.h"
#include "satrap/dense/gradient_source.h"
#include "satrap/dense/savable.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/gradient_reducer.h"

namespace satrap::pipeline {

/// Requests that ranks exchange in every step. Any rank may make them; after the step all ranks
/// know whether one has.
struct StepVotes {
  bool stop = false;        // end the run after this step
  bool checkpoint = false;  // write one after this step
  bool evaluate = false;
  bool report = false;  // the chief's: all ranks retire the steps up to this one
  bool decline =
      false;  // a rank has not computed this step: no rank trains on it, and the run ends
};

/// The connection of the ranks' devices, and the stream of the network. All outlive it.
struct RankDevices {
  collective::DeviceCommunicator* group = nullptr;  // null on all ranks or on none
  const backend::Stream* stream = nullptr;
  backend::StreamTimes* times = nullptr;  // gets those of exchanges, unless null
};

/// The ranks of a job as their dense stages see them. All ranks make the same calls in the same
/// order; a single rank returns at once. One thread.
class RankGroup {
 public:
  /// With `devices` gradients are summed where the networks compute.
  RankGroup(Cluster& cluster, StageTimers& timers, const RankDevices& devices = {});

  /// Whether reduce() only queues the sum: with other ranks, on devices.
  bool is_on_devices() const { return devices_.group != nullptr; }

  /// For forward_backward: sums the buckets it reports while it goes on, if there is another rank.
  /// May be called by any thread.
  dense::GradientSource::OnGradient on_gradient_of(dense::GradientSource& network);

  /// Sums the gradient and its flag over the ranks, and returns the requests of any of them once
  /// all is summed: in the host's memory in the order of the ranks.
  StepVotes reduce(dense::GradientSource& network, const StepVotes& mine);

  /// Throws if what was queued on devices has gone wrong. Call it before a step's results are used.
  void throw_if_failed() const {
    if (devices_.group != nullptr) devices_.group->throw_if_failed();
  }

  /// Gives all ranks the chief's parameters, statistics and optimizer state.
  void copy_from_chief(dense::Savable& network);

  /// `values` of all ranks, one rank after the other.
  std::vector<float> gather(std::span<const float> values);
  std::vector<double> gather(std::span<const double> values);
  std::vector<std::int64_t> gather(std::span<const std::int64_t> values);
  std::vector<std::uint64_t> gather(std::span<const std::uint64_t> values);

  bool any(bool mine);
  void barrier();

 private:
  template <class T>
  std::vector<T> all_gather(std::span<const T> values);
  std::vector<std::uint8_t> gather_byte(std::uint8_t mine);
  StepVotes gather_votes(const StepVotes& mine);
  void queue_sum(dense::GradientSource& network);

  Cluster& cluster_;
  StageTimers& timers_;
  const RankDevices devices_;
  const std::unique_ptr<collective::Communicator> group_;
  std::optional<GradientReducer> reducer_;  // of several ranks, in the host's memory
};

}  // namespace satrap::pipeline
