#pragma once

#include <memory>
#include <string>
#include <vector>

#include "satrap/app/host_program.h"
#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/continuation.h"
#include "satrap/checkpoint/remote_checkpoints.h"
#include "satrap/trainer/trainer.h"
#include "src/app/job_arguments.h"

namespace CLI {
class App;
}

namespace satrap::app {

/// [CONFIG] [key.path=value ...] --checkpoint DIR [--accept-changed-config]: the arguments of
/// commands that use what a job has learned.
struct UsedJob {
  JobArguments job;
  checkpoint::UsedCheckpoint checkpoint;

  void add_to(CLI::App& command);

  /// To be called before the members are used: chooses the checkpoint and reads the configuration,
  /// that of `host` or the checkpoint's own if none was named.
  job::JobConfig load(const HostProgram& host);

  /// `network_of` the job for this command, such as "eval".
  pipeline::MakeNetwork network(const job::JobConfig& config,
                                const HostProgram& host,
                                const std::string& command) const;

 private:
  std::string given_;                                         // the checkpoint, as it was named
  std::shared_ptr<const checkpoint::LocalCheckpoint> local_;  // lasts as long as the arguments
};

/// --data FILE, which may be repeated: rows to be used in place of the evaluation data.
void add_data_option(CLI::App& command, std::vector<std::string>& data, const std::string& what);

/// Makes `data` the evaluation data of the job, which the arguments gave; empty: changes nothing.
/// Throws Error(kInvalidConfig) if the job reads no files, or an override says something of the
/// evaluation data, which would have no effect.
void use_data(const std::vector<std::string>& data,
              const JobArguments& job,
              job::JobConfig& config);

/// Throws Error(kInvalidData) if nothing was evaluated.
void require_examples(const trainer::Evaluation& result);

/// The checkpoints meant by `path`: itself if it is one, else all of a run directory or of a
/// `checkpoints` directory, oldest first; never empty. Throws Error(kIo) if there is none.
std::vector<checkpoint::CheckpointInfo> checkpoints_of(const std::string& path);

/// Path of the newest of them: from which a job continues.
std::string newest_checkpoint(const std::string& path);

/// Path of the one to be used: the best that early stopping has found, if there is one, else the
/// newest. `path` may end with @best or @last. Logs which if it is not the newest.
std::string checkpoint_to_use(const std::string& path);

}  // namespace satrap::app
