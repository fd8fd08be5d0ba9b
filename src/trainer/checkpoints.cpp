#include "src/trainer/checkpoints.h"

#include <chrono>

#include "satrap/core/error.h"
#include "satrap/core/log.h"

namespace satrap::trainer {

Checkpoints::Checkpoints(const job::JobConfig& config, const pipeline::Cluster& cluster)
    : config_(config),
      cluster_(cluster),
      clock_(job::Interval::parse(config.checkpoint.every, "checkpoint.every")) {}

void Checkpoints::open(RunDirectory& directory, std::int64_t step) {
  directory_ = &directory;
  checkpoint::FailureLimits limits{.max_failures = config_.checkpoint.max_failures};
  if (const auto seconds = config_.checkpoint.max_unsaved_seconds()) {
    limits.max_unsaved = std::chrono::duration<double>(*seconds);
  }
  writer_.emplace(directory.checkpoints(), config_.checkpoint.keep, limits, directory.mirror());
  writer_->set_newer_aside(step);
}

bool Checkpoints::is_due(std::int64_t step, std::int64_t ended_epochs) {
  const bool is_due = clock_.due(step, ended_epochs);
  return is_left_out_ ? !writer_->is_writing_after({}) : is_due;
}

bool Checkpoints::begin(std::int64_t step, bool is_needed, pipeline::RankGroup& ranks) {
  if (step_ == step) return false;
  if (cluster_.is_chief()) directory_->require_held();
  while (cluster_.size() > 1 && !is_written(ranks)) {
    if (is_needed) continue;
    if (cluster_.is_chief()) {
      log_warning(
          "the checkpoint of step {} is left out: the one before it is still being written; the "
          "next one follows it at once",
          step);
    }
    is_left_out_ = true;
    return false;
  }
  is_left_out_ = false;
  step_ = step;
  if (cluster_.is_chief()) writer_->settle();  // one at a time: its snapshots are done
  return true;
}

/// On all ranks: whether the chief has written the last checkpoint. If not, it waits for that, but
/// no longer than the others, and what they have asked the shards, can.
bool Checkpoints::is_written(pipeline::RankGroup& ranks) const {
  const std::chrono::milliseconds pause(cluster_.timeout_ms() / 2);
  return !ranks.any(cluster_.is_chief() && writer_->is_writing_after(pause));
}

bool Checkpoints::prepare(const std::function<void(const std::string& directory)>& write_part,
                          pipeline::RankGroup& ranks) {
  std::optional<Error> failure;
  const auto all_succeed = [&](bool is_mine, const auto& work) {
    try {
      if (is_mine) work();
    } catch (const Error& error) {
      failure =
          Error(error.code(), concat("checkpoint of step ", step_, " failed: ", error.what()));
    }
    return !ranks.any(failure.has_value());
  };
  const bool is_chief = cluster_.is_chief();
  if (all_succeed(is_chief, [&] { writer_->prepare(step_); }) &&
      all_succeed(!is_chief, [&] { write_part(RunDirectory::checkpoints_of(config_)); })) {
    return true;
  }
  if (is_chief) {
    writer_->add_failure(failure.value_or(Error(
        ErrorCode::kIo,
        concat("checkpoint of step ", step_, " failed: another rank could not write its part"))));
  } else if (failure) {
    log_warning("{}", failure->what());
  }
  return false;
}

}  // namespace satrap::trainer
