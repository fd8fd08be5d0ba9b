#include "job_start.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/checkpoint/data_continuation.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/columns.h"
#include "satrap/data/loader.h"
#include "satrap/data/remote_folder.h"
#include "satrap/data/row_count.h"
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
                 const data::Schema& schema,
                 const RunDirectory& directory) {
  const ScopedPhase fitting(options.live, LiveProgress::Phase::kFitting);
  data::require_evaluation_rows(config.data, schema);
  const bool is_warm = config.train.warm_start.is_on();
  const std::string warm = is_warm ? warm_start_checkpoint(config) : "";
  return {{"warm_start", directory.local_checkpoint(warm)},
          {"warm_start_url", data::is_url(warm) ? warm : ""},
          {"checkpoint", ""},
          {"transforms", data::fit_transforms(config.data, schema, config.seed).to_json(schema)},
          {"same_input", true},
          {"data_changes", Json::array()},
          {"batch_size", config.data.batch_size}};
}

/// With the first row of an evaluation part at the tail, which is counted once for the whole job.
job::JobConfig with_first_eval_row(job::JobConfig config) {
  if (config.data.eval.by_tail()) {
    config.data.eval.first_row = data::first_eval_row(config.data);
    log_info("the last rows are for evaluation, from row {} on", config.data.eval.first_row);
  }
  return config;
}

/// Where in the topic the job begins or continues, which is decided once for all.
struct TopicStart {
  std::shared_ptr<const data::TopicPosition> position = {};  // null: it reads no topic
  std::int64_t row = -1;                                     // JobStart::topic_row
};

TopicStart find_topic(const job::JobConfig& config,
                      const std::string& checkpoint,
                      std::int64_t num_ranks,
                      const std::atomic<bool>* stop) {
  if (!data::reads_topic(config.data)) return {};
  const bool has_loaders = config.data.loaders.is_on();
  const bool has_shares = config.data.kafka.is_endless() && (num_ranks > 1 || has_loaders);
  const std::string readers =
      concat("data.kafka.end: never with ", num_ranks > 1 ? "several ranks" : "loaders");
  if (has_shares && config.train.deterministic) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(readers,
                       " rules out train.deterministic: what arrives first is trained on first; "
                       "write data.kafka.end: watermark"));
  }
  if (has_shares && config.data.train.max_rows > 0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(readers,
                       " rules out data.train.max_rows: each counts its own rows; write "
                       "train.max_steps"));
  }
  if (checkpoint.empty()) {
    return {.position =
                std::make_shared<const data::TopicPosition>(data::begin_topic(config.data, stop))};
  }
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
  return {.position = std::make_shared<const data::TopicPosition>(
              data::continue_topic(config.data, *saved, checkpoint, stop)),
          .row = saved->is_endless() ? saved->row : -1};
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
                                          const job::JobConfig& config,
                                          const TrainOptions& options,
                                          bool is_chief) {
  if (options.open_batches) return {};
  return checkpoint::compare_data(checkpoint, config.data, options.accept_changed_data, is_chief);
}

/// As JSON can hold them: paths of data need not be UTF-8.
Json json_of(const std::vector<std::string>& changes) {
  return Json::parse(Json(changes).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json start_from(const std::string& checkpoint,
                const job::JobConfig& config,
                const TrainOptions& options) {
  const checkpoint::Continuation continuation =
      checkpoint::compare_with_checkpoint(checkpoint, config);
  const checkpoint::DataContinuation data = compare_data(checkpoint, config, options, true);
  if (config.train.warm_start.is_on()) {
    log_info("train.warm_start is not repeated: {} already contains it", checkpoint);
  }
  return {{"checkpoint", checkpoint},
          {"transforms", checkpoint::read_transforms(checkpoint)},
          {"same_input", continuation.has_same_input && data.has_same_input()},
          {"data_changes", json_of(data.changes)},
          {"batch_size", continuation.batch_size},
          {"warm_start", ""},
          {"warm_start_url", ""}};
}

std::shared_ptr<const data::TopicPosition> topic_of(const std::string& json) {
  if (json.empty()) return nullptr;
  return std::make_shared<const data::TopicPosition>(
      data::TopicPosition::from_json(json, "what rank 0 has sent"));
}

/// What a user would have to mend in any folder, before a word about the folder; a start that
/// fails here leaves nothing behind.
void check_fresh_start(const job::JobConfig& config,
                       const TrainOptions& options,
                       const data::Schema& schema) {
  pipeline::require_device(config);
  if (options.open_batches) return;
  for (const data::Role role : {data::Role::kTrain, data::Role::kEval}) {
    data::check_columns(config.data, schema, role);
  }
}

/// Takes the run directory. May fetch a checkpoint, or read much data.
Json start_of_chief(const job::JobConfig& config,
                    const TrainOptions& options,
                    const data::Schema& schema,
                    std::int64_t num_ranks,
                    std::optional<RunDirectory>& directory) {
  std::string checkpoint = given_checkpoint(options);
  const RunDirectory::Mode mode = mode_of(options);
  if (mode != RunDirectory::Mode::kResume) check_fresh_start(config, options, schema);
  directory.emplace(config, mode);  // from here on no other job writes there
  checkpoint = checkpoint.empty() && options.resume ? directory->newest_checkpoint()
                                                    : directory->local_checkpoint(checkpoint);
  job::JobConfig counted = with_first_eval_row(config);
  const TopicStart topic = find_topic(counted, checkpoint, num_ranks, options.stop);
  counted.data.kafka.position = topic.position;
  Json json = checkpoint.empty() ? fresh_start(counted, options, schema, *directory)
                                 : start_from(checkpoint, counted, options);
  json["first_eval_row"] = counted.data.eval.first_row;
  json["topic"] = topic.position ? topic.position->to_json() : "";
  json["topic_row"] = topic.row;
  return json;
}

}  // namespace

JobStart JobStart::decide(const job::JobConfig& config,
                          const TrainOptions& options,
                          const data::Schema& schema,
                          pipeline::Cluster& cluster,
                          std::optional<RunDirectory>& directory) {
  const Json json = Json::parse(cluster.share(
      [&] { return start_of_chief(config, options, schema, cluster.size(), directory).dump(); }));
  const std::string checkpoint = json["checkpoint"];
  if (!cluster.is_chief()) require_shared_scratch(config);
  if (!cluster.is_chief() && !checkpoint.empty()) {
    const checkpoint::DataContinuation mine = compare_data(checkpoint, config, options, false);
    checkpoint::require_same_changes({.changes = json_of(mine.changes)}, json["data_changes"],
                                     cluster.rank());
  }
  return {checkpoint,
          json["transforms"],
          {.has_same_input = json["same_input"], .batch_size = json["batch_size"]},
          json["first_eval_row"],
          topic_of(json["topic"]),
          json["topic_row"],
          {.path = json["warm_start"], .url = json["warm_start_url"]}};
}

}  // namespace satrap::trainer
