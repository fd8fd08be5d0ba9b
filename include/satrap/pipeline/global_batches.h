#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "satrap/core/stage_timer.h"
#include "satrap/data/batch_source.h"
#include "satrap/data/schema.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/work.h"

namespace satrap::pipeline {

/// A rank's shares of the global batches of a job. The ranks tell each other, one batch ahead,
/// how many examples they have, so that all of them make the same steps: a rank whose data end
/// earlier has empty batches until the others' epoch ends too. So has a rank whose endless data do
/// not come within kIdleAfter; while they do not, the others wait for it no more. They also agree
/// on how many batches to read before their turn. Used by the planner's thread.
class GlobalBatches {
 public:
  /// `source` outlives it and begins at `start`. `group`: all ranks' planners; nullptr: this rank
  /// decides alone.
  GlobalBatches(data::BatchSource& source,
                const data::Schema& schema,
                const data::DataPosition& start,
                std::unique_ptr<collective::Communicator> group,
                const Cluster& cluster,
                StageTimers& timers);

  /// Returns false at the end of the data of all ranks, once closed, or at a batch that a rank
  /// cannot read: error() then says why, on that rank by its error, on the others by a
  /// net::NetError. Throws net::NetError if the ranks cannot agree.
  bool next(data::Batch& batch, RankShares& shares);
  const std::exception_ptr& error() const { return error_; }

  /// How many batches this rank wants to read before it is the turn of the first. Without a known
  /// amount of data it wants none: a next() may wait for input that never comes.
  void want_ahead(std::int64_t num_batches);

  /// The fewest that any rank wants: as they said in the last next(), and the same on all.
  std::int64_t num_ahead() const { return num_ahead_; }

  /// Makes a blocked or later next() return false or throw soon, also on the other ranks. May be
  /// called from any thread.
  void close();

 private:
  static constexpr std::int64_t kFailed = -1, kStopped = -2, kIdle = -3;
  static constexpr std::chrono::milliseconds kIdleAfter{100};
  struct Line {                            // what a rank tells the others
    std::int64_t examples = 0, epoch = 0;  // of the batch it could hand out; 0 examples: none
    bool ends_epoch = false;
    std::int64_t wanted_ahead = 0, lag = -1, time_ms = -1;
    double read_seconds = 0.0;
    data::DataPosition before, after;  // where it stands without it, and with it
  };
  bool next_alone(data::Batch& batch, RankShares& shares);
  void read_ahead();
  void agree();
  bool must_wait() const;
  std::int64_t lag() const;
  std::int64_t time_ms() const;
  Line line() const;
  bool hear(RankShares& shares);

  data::BatchSource& source_;
  const std::int64_t num_features_, num_numeric_, num_labels_;
  const std::unique_ptr<collective::Communicator> group_;
  const Cluster& cluster_;
  StageTimers& timers_;
  data::DataPosition position_;  // after what was handed out
  data::Batch next_;             // read, not handed out yet
  bool has_next_ = false;
  bool is_idle_ = false;    // no data have come
  bool holds_up_ = false;   // then others had examples
  bool hands_out_ = false;  // next_ belongs to this step
  std::int64_t wanted_ahead_ = 0, num_ahead_ = 0;
  std::exception_ptr error_;
  std::vector<Line> lines_;  // [num_ranks]
};

}  // namespace satrap::pipeline
