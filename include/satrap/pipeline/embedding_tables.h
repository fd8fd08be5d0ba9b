#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "satrap/core/stage_timer.h"
#include "satrap/embedding/cached_rows.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/pipeline/step_driver.h"
#include "satrap/ps/shard_job.h"

namespace satrap::pipeline {

/// The rows as they were at the end of a step, to be written while training continues.
class RowsSnapshot {
 public:
  virtual ~RowsSnapshot() = default;

  /// Writes the files of all tables to `directory`. To be called once, from any one thread.
  virtual std::vector<ps::SnapshotFile> write(const std::string& directory) = 0;
};

/// The rows that a job starts with.
struct InitialRows {
  std::int64_t step = 0;  // of this job: the last one whose updates they have
  std::vector<table::RowFile> files = {};
};

/// The rows of a job: the interface over tables in this process and tables on shards.
class EmbeddingTables {
 public:
  virtual ~EmbeddingTables() = default;

  /// Before anything else: loads the rows that the job starts with. Blocks. All ranks call it.
  virtual void begin(const InitialRows& rows) = 0;

  virtual embedding::RowAccess& access() = 0;

  virtual std::unique_ptr<StepDriver> make_driver(StepQueue& queue,
                                                  StepDriver::Options options,
                                                  StageTimers& timers) = 0;

  /// Called when the updates of all steps up to `step`, and no later one, have been applied; takes
  /// milliseconds.
  virtual std::unique_ptr<RowsSnapshot> take_snapshot(std::int64_t step) = 0;

  /// The part in a snapshot of a rank that has not taken it: for all other ranks, at the same step.
  /// Returns at once.
  virtual void join_snapshot() {}

  /// Blocks until the last snapshot, taken or joined, needs nothing more of this rank's rows.
  virtual void wait_joined() {}

  /// Blocks until rows read for evaluation are those after this rank's last update. No update may
  /// run.
  virtual void flush() {}

  struct Size {
    std::int64_t rows = 0;
    std::int64_t bytes = 0;  // of rows and indexes
  };
  virtual Size size() = 0;

  /// The counts of the cache of rows, if there is one.
  virtual std::optional<embedding::CacheCounts> cache() { return std::nullopt; }
};

}  // namespace satrap::pipeline
