#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "satrap/cli/stop_signals.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/model.h"
#include "satrap/trainer/trainer.h"

namespace satrap::app {

/// What a program gives to a command that it runs in its own process, as python/satrap does. Of the
/// program `satrap` all is empty.
struct HostProgram {
  /// The network of a job of model 'python'. A command calls it once, before it reads data.
  std::function<pipeline::MakeNetwork(const job::JobConfig&)> network = {};
  /// As in trainer::TrainOptions.
  std::shared_ptr<const void>* memory_of_batches = nullptr;
  /// Takes the place of the checkpoint's own job.
  std::optional<job::JobConfig> job = {};
  /// Gets an evaluation, which is else printed.
  std::function<void(const trainer::Evaluation&)> take_evaluation = {};
};

/// Who takes SIGINT and SIGTERM during a command: of one that a program calls as a function, it.
inline cli::StopSignals::Role role_of(const HostProgram& host) {
  return host.job ? cli::StopSignals::Role::kGuest : cli::StopSignals::Role::kWorker;
}

/// The network of a job if it is not satrap's own, else nothing. Throws Error(kInvalidConfig) if no
/// program computes it; `command` are the words that would run it elsewhere: "train clicks.yaml".
pipeline::MakeNetwork network_of(const job::JobConfig& config,
                                 const HostProgram& host,
                                 const std::string& command);

}  // namespace satrap::app
