// The checkpoints of a run; the rest of TrainingRun is in training_run.cpp.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/topic.h"
#include "satrap/job/config_paths.h"
#include "training_run.h"

namespace satrap::trainer {

std::optional<checkpoint::EarlyStoppingState> TrainingRun::early_stopping_state() const {
  return early_stopping_.is_on() ? std::optional(early_stopping_.state()) : std::nullopt;
}

/// On all ranks: saves the chief's rows, dense state and data positions, and every rank's lookups
/// ahead. `is_needed`: of this step and no later one; else it is left out while the last one is
/// still being written and the job has several ranks.
void TrainingRun::start_checkpoint(bool is_needed) {
  if (checkpointed_step_ == step_) return;
  if (cluster_.is_chief()) directory_->require_held();
  while (cluster_.size() > 1 && !is_written()) {
    if (is_needed) continue;
    if (cluster_.is_chief()) {
      log_warning(
          "the checkpoint of step {} is left out: the one before it is still being written; the "
          "next one follows it at once",
          step_);
    }
    has_left_checkpoint_ = true;
    return;
  }
  has_left_checkpoint_ = false;
  checkpointed_step_ = step_;
  if (cluster_.is_chief()) checkpoints_->settle();  // one at a time: its snapshots are done
  settle();
  std::vector<pipeline::PendingLookup> pending;
  // Lookups ahead of step 1 read what a resumed run begins with, and its input may be far.
  if (config_.train.deterministic && step_ > 0) pending = queue_->pending_lookups(step_);
  if (cluster_.size() > 1 && !prepare_checkpoint(pending)) return;
  if (!cluster_.is_chief()) return model_.tables->join_snapshot();
  auto content = std::make_unique<checkpoint::CheckpointContent>();
  content->step = step_;
  content->positions = positions_;
  content->ended_epochs = ended_epochs_;
  content->examples = reporter_->examples();
  content->nonfinite_steps = reporter_->nonfinite_steps();
  content->first_eval_row = config_.data.eval.first_row;
  content->metrics = reporter_->metrics();
  content->early_stopping = early_stopping_state();
  content->transforms_json = transforms_.to_json(schema_);
  content->config_yaml = dump_config(job::with_relative_paths(config_));
  content->data_files = source_->files();
  content->topic = topic_position();
  content->published = [this](const checkpoint::CheckpointContent& complete) {
    if (complete.topic && !config_.data.kafka.group.empty()) commit_topic(*complete.topic);
  };
  content->pending = std::move(pending);
  content->capture(model_);
  checkpoints_->start(std::move(content));
}

/// On all ranks: whether the chief has written the last checkpoint. If not, it waits for that, but
/// no longer than the others, and what they have asked the shards, can.
bool TrainingRun::is_written() {
  const std::chrono::milliseconds pause(cluster_.timeout_ms() / 2);
  return !ranks_.any(cluster_.is_chief() && checkpoints_->is_writing_after(pause));
}

/// From where the ranks can continue in the topic. Without an end each reads partitions of its own:
/// from where this rank can.
std::optional<data::TopicPosition> TrainingRun::topic_position() const {
  const bool has_share = source_->is_endless() && positions_.size() > 1;
  return source_->topic_position(
      has_share ? positions_[static_cast<std::size_t>(cluster_.rank())]
                : std::ranges::min(positions_, {}, [](const data::DataPosition& at) {
                    return std::pair(at.epoch, at.next_row);
                  }));
}

/// For tools that show how far a job is: satrap continues from the checkpoint.
void TrainingRun::commit_topic(const data::TopicPosition& position) const {
  try {
    data::commit_topic(config_.data, position);
  } catch (const Error& error) {
    log_warning("the offsets of group '{}' are not committed: {}", config_.data.kafka.group,
                error.what());
  }
}

/// On all of several ranks: makes the checkpoint's folder, and writes the lookups of each rank but
/// the chief there. False on all if any of them failed; the chief has counted it.
bool TrainingRun::prepare_checkpoint(const std::vector<pipeline::PendingLookup>& pending) {
  std::optional<Error> failure;
  const auto all_succeed = [&](bool is_mine, const auto& work) {
    try {
      if (is_mine) work();
    } catch (const Error& error) {
      failure =
          Error(error.code(), concat("checkpoint of step ", step_, " failed: ", error.what()));
    }
    return !ranks_.any(failure.has_value());
  };
  const bool is_chief = cluster_.is_chief();
  const auto write_mine = [&] {
    const std::string directory = RunDirectory::checkpoints_of(config_);
    checkpoint::write_pending(directory, step_, cluster_.rank(), pending);
    if (const auto topic = topic_position(); topic && topic->is_endless()) {
      checkpoint::write_topic_share(directory, step_, cluster_.rank(), *topic);
    }
  };
  if (all_succeed(is_chief, [&] { checkpoints_->prepare(step_); }) &&
      all_succeed(!is_chief, write_mine)) {
    return true;
  }
  if (is_chief) {
    checkpoints_->add_failure(failure.value_or(Error(
        ErrorCode::kIo,
        concat("checkpoint of step ", step_, " failed: another rank could not write its part"))));
  } else if (failure) {
    log_warning("{}", failure->what());
  }
  return false;
}

}  // namespace satrap::trainer
