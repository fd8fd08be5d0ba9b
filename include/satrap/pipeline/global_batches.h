#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "satrap/core/stage_timer.h"
#include "satrap/data/batch_source.h"
#include "satrap/data/schema.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/work.h"

namespace satrap::pipeline {

/// A rank's shares of the global batches of a job. The ranks tell each other, one step ahead,
/// how many examples they have, so that all of them make the same steps: a rank whose data end
/// earlier has empty batches until the others' epoch ends too. Used by the planner's thread.
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

  /// Returns false at the end of the data of all ranks, or once closed.
  bool next(data::Batch& batch, RankShares& shares);

  /// Whether the amount of data is known, so that no next() waits for input that may never come.
  bool has_end() const { return source_.rows_per_epoch() > 0 || source_.stats().total_bytes > 0; }

  /// Makes a blocked or later next() return false or throw soon, also on the other ranks. May be
  /// called from any thread.
  void close();

 private:
  struct Line {                            // what a rank tells the others
    std::int64_t examples = 0, epoch = 0;  // of the batch it could hand out; 0 examples: none
    data::DataPosition before, after;      // where it stands without it, and with it
  };
  bool next_alone(data::Batch& batch, RankShares& shares);
  void read_ahead();
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
  bool hands_out_ = false;   // next_ belongs to this step
  std::vector<Line> lines_;  // [num_ranks]
};

}  // namespace satrap::pipeline
