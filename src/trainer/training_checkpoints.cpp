// What a checkpoint has of a TrainingRun; how the ranks make one together is in checkpoints.h.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/topic.h"
#include "satrap/job/config_paths.h"
#include "src/trainer/training_run.h"

namespace satrap::trainer {

/// On all ranks: saves the chief's rows, dense state and data positions, and every rank's lookups
/// ahead. `is_needed`: as Checkpoints::begin.
void TrainingRun::start_checkpoint(bool is_needed) {
  if (!checkpoints_.begin(step_, is_needed, ranks_)) return;
  settle();
  std::vector<pipeline::PendingLookup> pending;
  // Lookups ahead of step 1 read what a resumed run begins with, and its input may be far.
  if (config_.train.deterministic && step_ > 0) pending = queue_->pending_lookups(step_);
  const auto write = [&](const std::string& directory) { write_part(directory, pending); };
  if (cluster_.size() > 1 && !checkpoints_.prepare(write, ranks_)) return;
  if (!cluster_.is_chief()) return model_.tables->join_snapshot();
  checkpoints_.writer().start(checkpoint_content(std::move(pending)));
}

/// The part of a rank that is not the chief: its lookups, and its share of a topic without an end.
void TrainingRun::write_part(const std::string& directory,
                             const std::vector<pipeline::PendingLookup>& pending) const {
  checkpoint::write_pending(directory, step_, cluster_.rank(), pending);
  if (const auto topic = topic_position(); topic && topic->is_endless()) {
    checkpoint::write_topic_share(directory, step_, cluster_.rank(), *topic);
  }
}

std::unique_ptr<checkpoint::CheckpointContent> TrainingRun::checkpoint_content(
    std::vector<pipeline::PendingLookup> pending) {
  auto content = std::make_unique<checkpoint::CheckpointContent>();
  content->step = step_;
  content->positions = positions_;
  content->ended_epochs = ended_epochs_;
  content->examples = reporter_->examples();
  content->nonfinite_steps = reporter_->nonfinite_steps();
  if (config_.data.eval.by_tail()) content->first_eval_row = start_.data.first_eval_row();
  content->metrics = reporter_->metrics();
  content->early_stopping = evaluations_.state();
  content->transforms_json = transforms_.to_json(schema_);
  content->config_yaml = dump_config(job::with_relative_paths(config_));
  content->data_files = source_->files();
  content->topic = topic_position();
  content->published = [this](const checkpoint::CheckpointContent& complete) {
    if (complete.topic && !config_.data.kafka.group.empty()) commit_topic(*complete.topic);
  };
  content->pending = std::move(pending);
  content->capture(model_);
  return content;
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

}  // namespace satrap::trainer
