#include "job_start.h"

#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/loader.h"

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
Json fresh_start(const job::JobConfig& config, const data::Schema& schema) {
  return {{"warm_start", config.train.warm_start.is_on() ? warm_start_checkpoint(config) : ""},
          {"checkpoint", ""},
          {"transforms", data::fit_transforms(config.data, schema, config.seed).to_json(schema)},
          {"same_input", true},
          {"batch_size", config.data.batch_size}};
}

Json start_from(const std::string& checkpoint, const job::JobConfig& config) {
  const checkpoint::Continuation continuation =
      checkpoint::compare_with_checkpoint(checkpoint, config);
  if (config.train.warm_start.is_on()) {
    log_info("train.warm_start is not repeated: {} already contains it", checkpoint);
  }
  return {{"checkpoint", checkpoint},
          {"transforms", checkpoint::read_transforms(checkpoint)},
          {"same_input", continuation.has_same_input},
          {"batch_size", continuation.batch_size},
          {"warm_start", ""}};
}

}  // namespace

JobStart JobStart::decide(const job::JobConfig& config,
                          const TrainOptions& options,
                          const data::Schema& schema,
                          pipeline::Cluster& cluster,
                          std::optional<RunDirectory>& directory) {
  std::string start;
  if (cluster.is_chief()) {
    std::string checkpoint = given_checkpoint(options);
    directory.emplace(config, mode_of(options));  // from here on no other job writes there
    if (checkpoint.empty() && options.resume)
      checkpoint = checkpoint::find_checkpoint(config.run_dir);
    start =
        (checkpoint.empty() ? fresh_start(config, schema) : start_from(checkpoint, config)).dump();
  }
  const Json json = Json::parse(cluster.share(start));
  return {json["checkpoint"],
          json["transforms"],
          {.has_same_input = json["same_input"], .batch_size = json["batch_size"]},
          json["warm_start"]};
}

}  // namespace satrap::trainer
