#include "satrap/checkpoint/continuation.h"

#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/schema.h"
#include "satrap/job/config_paths.h"
#include "src/checkpoint/config_changes.h"

namespace satrap::checkpoint {
namespace {

std::optional<job::JobConfig> config_at(const std::string& path) {
  job::JobConfig config;
  try {
    job::keep_past_defaults(config, load_config(config, path));
    data::resolve_schema(config.data);
  } catch (const Error& error) {
    log_warning("the configuration is not compared with the checkpoint's: {}", error.what());
    return std::nullopt;
  }
  return config;
}

std::optional<job::JobConfig> config_of(const std::string& checkpoint) {
  if (const std::string own = find_config(checkpoint); !own.empty()) return config_at(own);
  const auto run = std::filesystem::path(checkpoint).parent_path().parent_path() / kConfigFile;
  if (std::filesystem::exists(run)) return config_at(run.string());
  return std::nullopt;
}

void refuse_impossible(const std::string& checkpoint, const std::vector<ConfigChange>& changes) {
  std::string problems;
  for (const ConfigChange& change : changes) {
    if (change.kind != ChangeKind::kImpossible) continue;
    problems += concat("cannot continue from ", checkpoint, " with another ", change.key, ": ",
                       change.before, " -> ", change.after, " (", change.reason, ")\n");
  }
  if (!problems.empty()) throw Error(ErrorCode::kInvalidConfig, problems);
}

std::vector<std::string> label_names(const data::Schema& schema) {
  std::vector<std::string> names;
  for (const data::NamedLabelConfig& label : schema.labels) names.push_back(label.name);
  return names;
}

bool have_same_labels(const data::Schema& before, const data::Schema& now) {
  const bool named = !before.text.labels.empty() && !now.text.labels.empty();
  return named ? label_names(before) == label_names(now) : before.num_labels() == now.num_labels();
}

void compare_labels(const std::string& checkpoint,
                    const job::JobConfig& before,
                    const job::JobConfig& config,
                    const std::string& advice) {
  const data::Schema old = data::resolve_schema(before.data);
  const data::Schema now = data::resolve_schema(config.data);
  if (have_same_labels(old, now)) return;
  throw Error(ErrorCode::kInvalidConfig,
              fmt::format("data.schema.labels: {} predicts [{}] in this order, the configuration "
                          "has [{}]{}",
                          checkpoint, fmt::join(label_names(old), ", "),
                          fmt::join(label_names(now), ", "), advice));
}

std::string describe(const data::EvalConfig& eval) {
  return eval.is_part() ? fmt::format("fraction {} by {}", eval.fraction, eval.by)
                        : "no part of the training rows";
}

/// A part of the training rows may be evaluated only if none of them has been trained on. By hash,
/// column and tail a smaller part lies within a larger one.
void compare_eval_parts(const std::string& checkpoint,
                        const data::EvalConfig& before,
                        const data::EvalConfig& now) {
  if (!now.is_part()) return;
  if (before.is_part() && before.by == now.by && now.fraction <= before.fraction) return;
  throw Error(
      ErrorCode::kInvalidConfig,
      fmt::format("data.eval: {} kept {} for evaluation, the configuration has {}: rows that "
                  "were trained on would be evaluated; undo the change, or name files for "
                  "evaluation alone (data.eval.path)",
                  checkpoint, describe(before), describe(now)));
}

}  // namespace

Continuation compare_with_checkpoint(const std::string& checkpoint, const job::JobConfig& config) {
  Continuation result{.batch_size = config.data.batch_size};
  const std::optional<job::JobConfig> before = config_of(checkpoint);
  if (!before) return result;
  const std::vector<ConfigChange> changes =
      config_changes(*before, job::with_relative_paths(config));
  refuse_impossible(checkpoint, changes);
  compare_eval_parts(checkpoint, before->data.eval, config.data.eval);
  for (const ConfigChange& change : changes) {
    const bool is_output = change.kind == ChangeKind::kOutput;
    log_info("changed{}: {}: {} -> {}", is_output ? " (does not affect what is learned)" : "",
             change.key, change.before, change.after);
    result.has_same_input &= change.kind != ChangeKind::kInput;
  }
  result.batch_size = before->data.batch_size;
  return result;
}

void check_labels(const std::string& checkpoint,
                  const job::JobConfig& config,
                  const std::string& advice) {
  const std::optional<job::JobConfig> before = config_of(checkpoint);
  if (before) compare_labels(checkpoint, *before, config, advice);
}

void check_predictions(const UsedCheckpoint& checkpoint, const job::JobConfig& config) {
  const std::optional<job::JobConfig> before = config_of(checkpoint.path);
  if (!before) return;
  compare_labels(checkpoint.path, *before, config, "");
  compare_eval_parts(checkpoint.path, before->data.eval, config.data.eval);
  std::string problems;
  for (const ConfigChange& change : config_changes(*before, job::with_relative_paths(config))) {
    const PredictionEffect effect = effect_on_predictions(change);
    const std::string both = concat(change.key, ": ", change.before, " -> ", change.after);
    if (effect.reason.empty()) {
      if (change.key.starts_with("data.schema")) log_info("changed: {}", both);
    } else if (effect.is_fit && checkpoint.accept_changed_config) {
      log_warning("changed since the checkpoint was trained: {} ({})", both, effect.reason);
    } else {
      problems += concat(checkpoint.path, " was trained with another ", both, " (", effect.reason,
                         "); undo the change",
                         effect.is_fit ? ", or accept other predictions with "
                                         "--accept-changed-config\n"
                                       : "\n");
    }
  }
  if (!problems.empty()) throw Error(ErrorCode::kInvalidConfig, problems);
}

// Rounded up: skipping a few rows is better than training on them twice. If the next row is known,
// it counts.
data::DataPosition with_batch_size(data::DataPosition position,
                                   std::int64_t before,
                                   std::int64_t after) {
  position.batches = (position.batches * before + after - 1) / after;
  return position;
}

}  // namespace satrap::checkpoint
