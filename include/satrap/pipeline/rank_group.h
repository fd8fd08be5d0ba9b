#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "satrap/collective/communicator.h"
#include "satrap/core/stage_timer.h"
#include "satrap/dense/dense_network.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/gradient_reducer.h"

namespace satrap::pipeline {

/// Requests that ranks exchange in every step. Any rank may make them; after the step all ranks
/// know whether one has.
struct StepVotes {
  bool stop = false;        // end the run after this step
  bool checkpoint = false;  // write one after this step
  bool evaluate = false;
};

/// The ranks of a job as their dense stages see them. All ranks make the same calls in the same
/// order; a single rank returns at once. One thread.
class RankGroup {
 public:
  RankGroup(Cluster& cluster, StageTimers& timers);

  /// For forward_backward: sums the buckets it reports while it goes on, if there is another rank.
  /// May be called by any thread.
  dense::DenseNetwork::OnGradient on_gradient_of(dense::DenseNetwork& network);

  /// Sums the gradient and its flag over the ranks, in their order, and returns the requests of any
  /// of them once all is summed.
  StepVotes reduce(dense::DenseNetwork& network, const StepVotes& mine);

  /// Gives all ranks the chief's parameters, statistics and optimizer state.
  void copy_from_chief(dense::DenseNetwork& network);

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

  Cluster& cluster_;
  StageTimers& timers_;
  const std::unique_ptr<collective::Communicator> group_;
  std::optional<GradientReducer> reducer_;  // of several ranks
};

}  // namespace satrap::pipeline
