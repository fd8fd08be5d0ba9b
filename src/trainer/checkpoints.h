#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "satrap/checkpoint/checkpoint_writer.h"
#include "satrap/job/interval.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/rank_group.h"
#include "src/trainer/run_directory.h"

namespace satrap::trainer {

/// The checkpoints of a run: when one is due, which step has one, and how the ranks make one
/// together. All ranks call the same functions in the same order, but for the chief's; one thread.
/// Its destructor waits for the checkpoint that is being written.
class Checkpoints {
 public:
  /// Both outlive it.
  Checkpoints(const job::JobConfig& config, const pipeline::Cluster& cluster);

  /// The run continues from the checkpoint of `step`, which needs no other.
  void continue_from(std::int64_t step) { step_ = step; }

  /// For the chief: writes them to `directory`, which outlives it, and sets those of steps after
  /// `step` aside.
  void open(RunDirectory& directory, std::int64_t step);
  checkpoint::CheckpointWriter& writer() { return *writer_; }

  /// For the chief, once per step: whether one is due after `step`.
  bool is_due(std::int64_t step, std::int64_t ended_epochs);

  /// Whether one of `step` is to be made now: not if there is one. `is_needed`: of this step and no
  /// later one, so that it waits while the last one is being written; else it is left out if the
  /// job has several ranks, and due again once that is done. Throws the last one's error if the
  /// limits are reached, Error(kIo) if another job has taken the directory.
  bool begin(std::int64_t step, bool is_needed, pipeline::RankGroup& ranks);

  /// For several ranks, once one has begun: makes its folder, and has every rank but the chief
  /// write its part there, by `write_part(the folder of all checkpoints)`. Returns false on all if
  /// any of them failed; the chief has counted it.
  bool prepare(const std::function<void(const std::string& directory)>& write_part,
               pipeline::RankGroup& ranks);

 private:
  bool is_written(pipeline::RankGroup& ranks) const;

  const job::JobConfig& config_;
  const pipeline::Cluster& cluster_;
  job::IntervalClock clock_;
  std::int64_t step_ = -1;             // of the last one
  bool is_left_out_ = false;           // one was due and is owed
  RunDirectory* directory_ = nullptr;  // these two are the chief's
  std::optional<checkpoint::CheckpointWriter> writer_;
};

}  // namespace satrap::trainer
