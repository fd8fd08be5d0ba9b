#include "src/trainer/job_start.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/checkpoint/data_continuation.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/columns.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/remote_folder.h"
#include "satrap/data/topic.h"
#include "satrap/job/scratch.h"
#include "satrap/pipeline/model.h"

namespace satrap::trainer {
namespace {

using Json = nlohmann::ordered_json;

std::string given_checkpoint(const TrainOptions& options) {
  if (options.resume_from.empty()) return "";
  const std::string found = checkpoint::find_checkpoint(options.resume_from);
  if (!found.empty()) return found;
  throw Error(ErrorCode::kIo, concat("no checkpoint in '", options.resume_from, "'"));
}

std::string warm_start_checkpoint(const job::JobConfig& config) {
  const std::string& from = config.train.warm_start.from;
  const std::string found = checkpoint::find_checkpoint(from);
  if (!found.empty()) return found;
  throw Error(ErrorCode::kInvalidConfig,
              concat("train.warm_start.from: no checkpoint in '", from, "'"));
}

RunDirectory::Mode mode_of(const TrainOptions& options) {
  if (options.resume || !options.resume_from.empty()) return RunDirectory::Mode::kResume;
  return options.overwrite ? RunDirectory::Mode::kOverwrite : RunDirectory::Mode::kFresh;
}

/// The start of a new run.
Json fresh_start(const job::JobConfig& config,
                 const TrainOptions& options,
                 const data::Dataset& data,
                 const RunDirectory& directory) {
  const ScopedPhase fitting(options.live, LiveProgress::Phase::kFitting);
  data::require_evaluation_rows(data);
  const bool is_warm = config.train.warm_start.is_on();
  const std::string warm = is_warm ? warm_start_checkpoint(config) : "";
  return {{"warm_start", directory.local_checkpoint(warm)},
          {"warm_start_url", data::is_url(warm) ? warm : ""},
          {"checkpoint", ""},
          {"transforms", data::fit_transforms(data, config.seed).to_json(data.schema())},
          {"same_input", true},
          {"data_changes", Json::array()},
          {"batch_size", config.data.batch_size},
          {"topic_row", -1}};
}

/// A topic without an end is divided among ranks and loaders.
void check_topic(const job::JobConfig& config, const std::string& readers) {
  if (config.train.deterministic) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(readers,
                       " rules out train.deterministic: what arrives first is trained on first; "
                       "write data.kafka.end: watermark"));
  }
  if (config.data.train.max_rows > 0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(readers,
                       " rules out data.train.max_rows: each counts its own rows; write "
                       "train.max_steps"));
  }
}

/// The place in the topic from which the job continues.
data::TopicPosition continued_topic(const data::Dataset& data,
                                    const std::string& checkpoint,
                                    bool has_shares,
                                    const std::string& readers) {
  const std::optional<data::TopicPosition> saved = checkpoint::read_topic_position(checkpoint);
  if (!saved) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("cannot continue from ", checkpoint,
                       " with a topic: it was trained on other data; begin a new job with "
                       "train.warm_start.from"));
  }
  if (has_shares && !saved->is_endless()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("cannot continue from ", checkpoint, " with ", readers,
                       ": it read up to the watermark; continue with one rank and no loader, and "
                       "with more from its next checkpoint on"));
  }
  return data::continue_topic(data.config(), *saved, checkpoint, data.stop());
}

/// The data of a job that continues from `checkpoint`, or begins.
data::Dataset at_its_place(const data::Dataset& data,
                           const job::JobConfig& config,
                           const std::string& checkpoint,
                           std::int64_t num_ranks) {
  if (!data.is_topic()) return data;
  const bool has_loaders = config.data.loaders.is_on();
  const bool has_shares = config.data.kafka.is_endless() && (num_ranks > 1 || has_loaders);
  const std::string readers =
      concat("data.kafka.end: never with ", num_ranks > 1 ? "several ranks" : "loaders");
  if (has_shares) check_topic(config, readers);
  if (checkpoint.empty()) return data;
  return data.starting_at(continued_topic(data, checkpoint, has_shares, readers));
}

/// On another rank than the chief, which has created the folder.
void require_shared_scratch(const job::JobConfig& config) {
  const std::string directory = job::local_run_dir(config);
  if (!data::is_url(config.run_dir) || std::filesystem::exists(directory)) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat("run_dir: '", config.run_dir, "': this rank does not see the folder in which ",
                     "rank 0 keeps what goes there (", directory,
                     "): SATRAP_SCRATCH must name a folder that all machines of a job share"));
}

/// Batches that the caller supplies cannot be compared.
checkpoint::DataContinuation compare_data(const std::string& checkpoint,
                                          const data::Dataset& data,
                                          const TrainOptions& options,
                                          bool is_chief) {
  if (options.open_batches) return {};
  return checkpoint::compare_data(checkpoint, data, options.accept_changed_data, is_chief);
}

/// As JSON can hold them: paths of data need not be UTF-8.
Json json_of(const std::vector<std::string>& changes) {
  return Json::parse(Json(changes).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json start_from(const std::string& checkpoint,
                const job::JobConfig& config,
                const TrainOptions& options,
                const data::Dataset& data) {
  const checkpoint::Continuation continuation =
      checkpoint::compare_with_checkpoint(checkpoint, config);
  const checkpoint::DataContinuation changed = compare_data(checkpoint, data, options, true);
  if (config.train.warm_start.is_on()) {
    log_info("train.warm_start is not repeated: {} already contains it", checkpoint);
  }
  const bool is_numbered = data.is_topic() && data.topic_start()->is_endless();
  return {{"checkpoint", checkpoint},
          {"transforms", checkpoint::read_transforms(checkpoint)},
          {"same_input", continuation.has_same_input && changed.has_same_input()},
          {"data_changes", json_of(changed.changes)},
          {"batch_size", continuation.batch_size},
          {"warm_start", ""},
          {"warm_start_url", ""},
          {"topic_row", is_numbered ? data.topic_start()->row : -1}};
}

/// What a user would have to mend in any folder, before a word about the folder; a start that
/// fails here leaves nothing behind.
void check_fresh_start(const job::JobConfig& config,
                       const TrainOptions& options,
                       const data::Dataset& data) {
  pipeline::require_device(config);
  if (options.open_batches) return;
  for (const data::Role role : {data::Role::kTrain, data::Role::kEval}) {
    data::check_columns(data, role);
  }
}

/// Evaluation may come late.
void check_slices(const job::JobConfig& config, const data::Dataset& data) {
  if (config.train.slices.empty()) return;
  const bool is_part = config.data.eval.is_part();
  data::check_columns(data, is_part ? data::Role::kTrain : data::Role::kEval, config.train.slices);
}

/// Takes the run directory, and finds the place in the data. May fetch a checkpoint, or read much
/// data.
Json start_of_chief(const job::JobConfig& config,
                    const TrainOptions& options,
                    std::int64_t num_ranks,
                    data::Dataset& data,
                    std::optional<RunDirectory>& directory) {
  std::string checkpoint = given_checkpoint(options);
  const RunDirectory::Mode mode = mode_of(options);
  if (mode != RunDirectory::Mode::kResume) check_fresh_start(config, options, data);
  check_slices(config, data);
  directory.emplace(config, mode);  // from here on no other job writes there
  checkpoint = checkpoint.empty() && options.resume ? directory->newest_checkpoint()
                                                    : directory->local_checkpoint(checkpoint);
  if (config.data.eval.by_tail()) {
    log_info("the last rows are for evaluation, from row {} on", data.first_eval_row());
  }
  data = at_its_place(data, config, checkpoint, num_ranks);
  return checkpoint.empty() ? fresh_start(config, options, data, *directory)
                            : start_from(checkpoint, config, options, data);
}

}  // namespace

JobStart JobStart::decide(const job::JobConfig& config,
                          const TrainOptions& options,
                          pipeline::Cluster& cluster,
                          std::optional<RunDirectory>& directory) {
  data::Dataset data(config.data, {.folder = config.folder, .stop = options.stop});
  const std::string shared = cluster.share([&] {
    const Json json = start_of_chief(config, options, cluster.size(), data, directory);
    return concat(json.dump(), '\n', options.open_batches ? std::string() : data.resolved());
  });
  const std::size_t end = shared.find('\n');
  const Json json = Json::parse(shared.substr(0, end));
  const std::string checkpoint = json["checkpoint"];
  if (!cluster.is_chief()) {
    require_shared_scratch(config);
    if (!options.open_batches) data = data.as_resolved(shared.substr(end + 1), cluster.rank());
  }
  if (!cluster.is_chief() && !checkpoint.empty()) {
    const checkpoint::DataContinuation mine = compare_data(checkpoint, data, options, false);
    checkpoint::require_same_changes({.changes = json_of(mine.changes)}, json["data_changes"],
                                     cluster.rank());
  }
  return {checkpoint,
          json["transforms"],
          {.has_same_input = json["same_input"], .batch_size = json["batch_size"]},
          data,
          json["topic_row"],
          {.path = json["warm_start"], .url = json["warm_start_url"]}};
}

}  // namespace satrap::trainer
