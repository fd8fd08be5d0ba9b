#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "satrap/checkpoint/early_stopping_state.h"
#include "satrap/data/batch_source.h"
#include "satrap/pipeline/model.h"
#include "satrap/pipeline/step_queue.h"

namespace satrap::checkpoint {

/// A consistent cut of a job after one step, taken in milliseconds while nothing is trained: small
/// parts are copied, tables are snapshots that copy a row aside before it changes.
struct CheckpointContent {
  std::int64_t step = 0, examples = 0, nonfinite_steps = 0;
  std::vector<data::DataPosition> positions;  // [num_ranks]
  std::map<std::string, double> metrics;
  std::optional<EarlyStoppingState> early_stopping;
  std::string transforms_json, config_yaml;
  std::vector<pipeline::PendingLookup>
      pending;  // of the chief; other ranks have left theirs in files

  std::vector<table::TableSpec> tables;
  std::unique_ptr<pipeline::RowsSnapshot> rows;

  dense::DenseNetwork::State dense;

  /// Copies the dense state and starts the snapshots. The model must stand at the end of `step`.
  void capture(pipeline::Model& model);
};

/// What a rank other than the chief adds to a prepared checkpoint.
void write_pending(const std::string& directory,  // of all checkpoints
                   std::int64_t step,
                   std::int64_t rank,
                   const std::vector<pipeline::PendingLookup>& pending);

/// Publishes checkpoints in `directory`: each is written under a temporary name with checksums,
/// synced, then renamed; only then are the oldest removed until `keep` are left, but not the best
/// one by early stopping. A failure leaves the published ones as they are.
class CheckpointWriter {
 public:
  /// Creates `directory` and removes unfinished checkpoints of a run that was killed.
  CheckpointWriter(std::string directory, std::int64_t keep);
  ~CheckpointWriter();  // waits for the checkpoint in progress; its error is logged

  /// The run continues from `step`: checkpoints of later steps are no longer its past. They are
  /// renamed to abandoned-step-..., and removed once the first new one is published.
  void set_newer_aside(std::int64_t step);

  /// What was found after the checkpoint of `step` had been published, which is added to its
  /// manifest. After wait(). Does nothing if there is no such checkpoint.
  void update_evaluation(std::int64_t step,
                         const std::map<std::string, double>& metrics,
                         const std::optional<EarlyStoppingState>& early_stopping);

  /// For a job of several ranks: makes the place where the checkpoint of `step` will be written, so
  /// that the others can put their pending lookups there. After wait().
  void prepare(std::int64_t step);

  /// Writes in the background. Waits for the one before it first, and rethrows its error.
  void start(std::unique_ptr<CheckpointContent> content);

  /// Waits until all is published; rethrows the error of the last one.
  void wait();

 private:
  void publish(CheckpointContent& content);

  const std::string directory_;
  const std::int64_t keep_;
  std::thread thread_;
  std::exception_ptr error_;
};

}  // namespace satrap::checkpoint
