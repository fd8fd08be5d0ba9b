#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "satrap/checkpoint/early_stopping_state.h"
#include "satrap/checkpoint/remote_checkpoints.h"
#include "satrap/core/error.h"
#include "satrap/data/batch_source.h"
#include "satrap/data/data_file.h"
#include "satrap/data/topic_position.h"
#include "satrap/pipeline/model.h"
#include "satrap/pipeline/step_queue.h"

namespace satrap::checkpoint {

/// A consistent state of a job after one step, captured in milliseconds while training pauses:
/// small parts are copied, and tables become snapshots that copy a row aside before it changes.
struct CheckpointContent {
  std::int64_t step = 0, examples = 0, nonfinite_steps = 0;
  std::vector<data::DataPosition> positions;           // [num_ranks]
  std::int64_t ended_epochs = 0, first_eval_row = -1;  // as in the manifest
  std::map<std::string, double> metrics;
  std::optional<EarlyStoppingState> early_stopping;
  std::string transforms_json, config_yaml;
  std::vector<data::DataFile> data_files;  // BatchSource::files()
  std::optional<data::TopicPosition>
      topic;  // without an end the chief's share, until it is published
  std::function<void(const CheckpointContent&)>
      published;  // called once the checkpoint is complete; may be empty
  std::vector<pipeline::PendingLookup>
      pending;  // of the chief; other ranks have written theirs to files

  std::vector<table::TableSpec> tables;
  std::unique_ptr<pipeline::RowsSnapshot> rows;

  dense::Savable::State dense;

  /// Copies the dense state and starts the snapshots. The model must be at the end of `step`.
  void capture(pipeline::Model& model);
};

/// Adds the pending lookups of a rank other than the chief to a prepared checkpoint.
void write_pending(const std::string& directory,  // of all checkpoints
                   std::int64_t step,
                   std::int64_t rank,
                   const std::vector<pipeline::PendingLookup>& pending);

/// The same for its share of a topic without an end.
void write_topic_share(const std::string& directory,
                       std::int64_t step,
                       std::int64_t rank,
                       const data::TopicPosition& share);

/// How long a run goes on although its checkpoints cannot be written.
struct FailureLimits {
  std::int64_t max_failures = 1;                // in a row; this one ends the run
  std::optional<std::chrono::duration<double>>  // since the last one that could be
      max_unsaved = std::nullopt;
};

/// The checkpoints of a run in a store. Those on this machine are then copies of the newest.
struct CheckpointMirror {
  RemoteCheckpoints checkpoints;
  std::string owner;                      // a name of this process, unlike any other
  std::function<void()> require_owned;    // throws if another job has taken the run over
  std::function<bool()> is_lost;          // whether that has happened, as far as is known
  std::function<void()> before_manifest;  // copies what else belongs to the run; throws the same
};

/// Publishes checkpoints in `directory`: each is written under a temporary name with checksums,
/// synced, then renamed; only then are the oldest removed until `keep` are left, but not the best
/// one by early stopping. With a mirror, a checkpoint is uploaded before it gets its name, of the
/// mirror's so many are kept, and of `directory` one. A failure does not touch the published ones;
/// within the limits it is logged at once. A job that was taken over has no limits left.
class CheckpointWriter {
 public:
  /// Creates `directory` and removes unfinished checkpoints of a run that was killed.
  CheckpointWriter(std::string directory,
                   std::int64_t keep,
                   FailureLimits limits = {},
                   std::optional<CheckpointMirror> mirror = std::nullopt);
  ~CheckpointWriter();  // waits for the checkpoint in progress; its error is logged

  /// The run continues from `step`: checkpoints of later steps no longer belong to it. They are
  /// renamed to abandoned-step-..., and removed once the first new one is published.
  void set_newer_aside(std::int64_t step);

  /// Adds an evaluation, made after the checkpoint of `step` had been published, to its manifest.
  /// Call it after wait(). Does nothing if there is no such checkpoint.
  void update_evaluation(std::int64_t step,
                         const std::map<std::string, double>& metrics,
                         const std::optional<EarlyStoppingState>& early_stopping);

  /// For a job of several ranks: creates the folder where the checkpoint of `step` will be written,
  /// so that the others can write their part there. Call it after wait().
  void prepare(std::int64_t step);

  /// Writes in the background. First settles the previous one.
  void start(std::unique_ptr<CheckpointContent> content);

  /// Counts a checkpoint that failed before start().
  void add_failure(const Error& error);

  /// Whether the last one is still being written, or uploaded, after `pause`. Waits no longer.
  bool is_writing_after(std::chrono::milliseconds pause) const;

  /// Waits for the last one. Throws its error if the limits are reached.
  void settle();

  /// Waits for the last one. Throws its error, whatever the limits.
  void wait();

 private:
  using Clock = std::chrono::steady_clock;

  void publish(CheckpointContent& content);
  void upload(const std::string& directory, const std::string& name) const;
  void remove_oldest(const std::string& best) const;
  std::string shown(const std::string& name) const;  // of a checkpoint, where it is kept
  void join();
  std::string reached_limit() const;  // in words; "": none

  const std::string directory_;
  const std::int64_t keep_;
  const FailureLimits limits_;
  const std::optional<CheckpointMirror> mirror_;
  std::thread thread_;
  std::future<void> done_;                     // of the thread
  std::optional<Error> error_;                 // of the last one
  std::int64_t num_failures_ = 0;              // since the last success
  Clock::time_point saved_at_ = Clock::now();  // or begun
};

}  // namespace satrap::checkpoint
