#include "src/checkpoint/config_changes.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "satrap/core/error.h"
#include "satrap/data/schema.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/job/table_config.h"

namespace satrap::checkpoint {
namespace {

/// Applies to keys that begin and end like this (names in between may contain dots).
struct Rule {
  std::string_view begin, end;
  ChangeKind kind;
  const char* reason = "";
};

/// The first match counts; without a match, kTraining.
constexpr Rule kRules[] = {
    {"run_dir", "", ChangeKind::kOutput},
    {"folder", "", ChangeKind::kOutput},
    {"device", "", ChangeKind::kTraining},  // equal to rounding, where the network moves too
    {"seed", "", ChangeKind::kImpossible,
     "untrained rows and the order of shuffled data depend on it"},
    {"data.schema.features.", ".type", ChangeKind::kImpossible, "ids would mean other rows"},
    {"data.schema.value_rule", "", ChangeKind::kImpossible,
     "values would be other ids and inputs; write the checkpoint's, data.schema.value_rule: 1"},
    {"data.schema.features.", ".buckets.quantiles", ChangeKind::kImpossible,
     "the checkpoint has the ranges and a row for each"},
    {"data.schema.features.", ".buckets.boundaries", ChangeKind::kImpossible,
     "the checkpoint has the ranges and a row for each"},
    {"data.schema.numeric.", ".transform", ChangeKind::kImpossible,
     "the network was trained on numbers transformed so, and the checkpoint has the fitted values"},
    {"data.schema.numeric.", ".missing_indicator", ChangeKind::kImpossible,
     "it is an input of the network"},
    {"data.schema.labels.", ".weight", ChangeKind::kTraining},
    {"data.eval.fraction", "", ChangeKind::kInput},
    {"data.eval.by", "", ChangeKind::kInput},
    {"data.eval", "", ChangeKind::kTraining},
    {"data.group_by", "", ChangeKind::kTraining},
    {"data.synthetic.eval_rows", "", ChangeKind::kTraining},
    {"data.on_bad_row", "", ChangeKind::kTraining},
    {"data.max_bad_rows", "", ChangeKind::kTraining},
    {"data.kafka.start", "", ChangeKind::kOutput},  // of the start of a job alone
    {"data.kafka.group", "", ChangeKind::kOutput},
    {"data.kafka.timeout", "", ChangeKind::kOutput},
    {"data.kafka.properties", "", ChangeKind::kOutput},
    {"data.loaders.", "", ChangeKind::kOutput},
    {"data.reader_threads", "", ChangeKind::kOutput},
    {"data.cache", "", ChangeKind::kOutput},
    {"data.fit_rows", "", ChangeKind::kOutput},  // the checkpoint has the fitted values
    {"data.", "", ChangeKind::kInput},
    {"tables.", ".dim", ChangeKind::kImpossible, "the checkpoint's rows have that width"},
    {"tables.", ".weights", ChangeKind::kImpossible,
     "the checkpoint's rows are stored in that type"},
    {"tables.", ".optimizer.type", ChangeKind::kImpossible,
     "the rows of the checkpoint hold the state of that optimizer"},
    {"features.", ".table", ChangeKind::kImpossible, "ids would mean rows of another table"},
    {"features.", ".pooling", ChangeKind::kImpossible,
     "the network was trained on the output of that pooling"},
    {"model.dropout", "", ChangeKind::kTraining},
    {"model.engine", "", ChangeKind::kTraining},  // equal to rounding
    {"model.path", "", ChangeKind::kTraining},    // its parameters must still fit
    {"model.", "", ChangeKind::kImpossible, "the checkpoint's parameters belong to that network"},
    {"dense_optimizer.type", "", ChangeKind::kImpossible,
     "the checkpoint holds the state of that optimizer"},
    {"embedding.cache.", "", ChangeKind::kOutput},
    {"train.mode", "", ChangeKind::kInput},
    {"train.staleness", "", ChangeKind::kInput},
    {"train.staleness_schedule", "", ChangeKind::kInput},
    {"train.staleness_factor", "", ChangeKind::kInput},
    {"train.deterministic", "", ChangeKind::kInput},
    {"train.start_from_average", "", ChangeKind::kTraining},  // of the first step alone
    {"train.threads", "", ChangeKind::kOutput},
    {"train.prefetch_batches", "", ChangeKind::kTraining},  // affects eviction
    {"train.tensorboard", "", ChangeKind::kOutput},
    {"train.metric_window", "", ChangeKind::kOutput},
    {"train.report_every", "", ChangeKind::kOutput},
    {"train.expect.", "", ChangeKind::kOutput},
    {"train.warm_start.", "", ChangeKind::kImpossible, "it applies only to the start of a run"},
    {"checkpoint.", "", ChangeKind::kOutput},
    {"cluster.", "", ChangeKind::kOutput},
};

/// What a change does to predictions. The first match counts; without a match, nothing.
struct PredictionRule {
  std::string_view begin, end;
  bool is_fit;
  const char* reason;  // "": none
};

constexpr const char* kOtherInputs = "the network was trained on inputs read as before";
constexpr const char* kUntrained = "it gives ids without a row their weights";

constexpr PredictionRule kPredictionRules[] = {
    {"seed", "", true, kUntrained},
    {"data.schema.label", "", true, ""},  // and labels: check_predictions compares their names
    {"data.schema.", "", true, kOtherInputs},
    {"tables.", ".init.type", true, kUntrained},
    {"tables.", ".init.scale", true, kUntrained},
    {"tables.", ".dim", false, "the checkpoint's rows have that width"},
    {"tables.", ".weights", false, "the checkpoint's rows are stored in that type"},
    {"features.", "", true, kOtherInputs},
    {"model.dropout", "", true, ""},
    {"model.engine", "", true, ""},
    {"model.path", "", true, ""},  // a file may have moved; its parameters must still fit
    {"model.", "", false, "the checkpoint's parameters belong to that network"},
};

std::string shown(const std::string& text) { return text.empty() ? "\"\"" : text; }

ConfigChange classified(std::string key, const std::string& before, const std::string& after) {
  ConfigChange change{std::move(key), shown(before), shown(after)};
  for (const Rule& rule : kRules) {
    if (!change.key.starts_with(rule.begin) || !change.key.ends_with(rule.end)) continue;
    change.kind = rule.kind;
    change.reason = rule.reason;
    break;
  }
  return change;
}

template <class Config>
void compare(const std::string& prefix,
             const Config& before,
             const Config& after,
             std::vector<ConfigChange>& changes) {
  std::map<std::string, std::string> old;
  const auto values_of = [](const Config& config) {
    return config_values(dump_config(config), "configuration");
  };
  for (const ConfigValue& value : values_of(before)) old[value.path] = value.text;
  for (const ConfigValue& value : values_of(after)) {
    const auto found = old.extract(value.path);
    const std::string text = found ? found.mapped() : "nothing";
    if (text != value.text) changes.push_back(classified(prefix + value.path, text, value.text));
  }
  for (const auto& [path, text] : old) {  // entries of lists that are gone
    changes.push_back(classified(prefix + path, text, "nothing"));
  }
}

/// Inputs or labels of the model in their order, without ranges of names. `reason`: why their
/// number and names must not change.
template <class Config>
void compare_named(const std::string& key,
                   const char* reason,
                   const std::vector<Config>& before,
                   const std::vector<Config>& after,
                   std::vector<ConfigChange>& changes) {
  const auto names_of = [](const std::vector<Config>& inputs) {
    std::vector<std::string> names;
    for (const Config& input : inputs) names.push_back(input.name);
    return names;
  };
  const std::vector<std::string> old = names_of(before), now = names_of(after);
  if (old != now) {
    changes.push_back({key, fmt::format("[{}]", fmt::join(old, ", ")),
                       fmt::format("[{}]", fmt::join(now, ", ")), ChangeKind::kImpossible, reason});
    return;
  }
  for (std::size_t i = 0; i < now.size(); ++i) {
    compare(concat(key, ".", now[i], "."), before[i], after[i], changes);
  }
}

/// Gives both sides the same entries: one for each name that has one on either side, and `default`
/// if another name uses it.
template <class Config>
void align(const std::vector<std::string>& used,
           std::map<std::string, Config>& before,
           std::map<std::string, Config>& after) {
  std::map<std::string, Config> old, now;
  for (const std::string& name : used) {
    const bool has_own = before.contains(name) || after.contains(name);
    const std::string key = has_own ? name : "default";
    old[key] = job::entry_or_default(before, name);
    now[key] = job::entry_or_default(after, name);
  }
  before = std::move(old);
  after = std::move(now);
}

}  // namespace

std::vector<ConfigChange> config_changes(const job::JobConfig& before,
                                         const job::JobConfig& after) {
  const data::Schema old_schema = data::resolve_schema(before.data);
  const data::Schema schema = data::resolve_schema(after.data);
  std::vector<ConfigChange> changes;
  constexpr const char* kOfInputs = "the network was trained on these inputs in this order";
  compare_named("data.schema.features", kOfInputs, old_schema.text.features, schema.text.features,
                changes);
  compare_named("data.schema.numeric", kOfInputs, old_schema.text.numeric, schema.text.numeric,
                changes);
  // A single label need not keep its name, which is only a column's.
  const bool has_list = !old_schema.text.labels.empty() || !schema.text.labels.empty();
  if (has_list) {
    compare_named("data.schema.labels", "the network predicts these labels in this order",
                  old_schema.labels, schema.labels, changes);
  }
  for (ConfigChange& change : changes) {
    if (!change.key.ends_with(".max_length")) continue;
    const std::string name = change.key.substr(0, change.key.rfind('.'));
    const std::string feature = name.substr(std::string_view("data.schema.features.").size());
    if (job::entry_or_default(after.features, feature).pooling != "sequence") continue;
    change.kind = ChangeKind::kImpossible;
    change.reason = "the network has inputs for a sequence of that length";
  }

  job::JobConfig old = before, now = after;
  old.data.schema_name = now.data.schema_name = "";
  for (const auto& [config, resolved] : {std::pair{&old, &old_schema}, std::pair{&now, &schema}}) {
    if (config->device == "auto") config->device = "cpu";  // before it could be anything else
    config->data.schema = resolved->text;
    config->data.schema.features.clear();
    config->data.schema.numeric.clear();
    config->data.schema.labels.clear();
    if (has_list) config->data.schema.label = {};
  }
  std::vector<std::string> tables, features;
  for (const table::TableSpec& table : job::embedding_specs(after, schema).tables) {
    tables.push_back(table.name);
  }
  for (const data::SchemaFeature& feature : schema.features) features.push_back(feature.name);
  align(tables, old.tables, now.tables);
  align(features, old.features, now.features);

  std::vector<ConfigChange> others;
  compare("", old, now, others);
  for (ConfigChange& change : others) {
    const bool momentum = change.key == "dense_optimizer.momentum";
    if (momentum && (old.dense_optimizer.momentum == 0.0 || now.dense_optimizer.momentum == 0.0)) {
      change.kind = ChangeKind::kImpossible;
      change.reason = "the checkpoint has momentum for every parameter, or none at all";
    }
    if (change.key.starts_with("train.warm_start.") && !now.train.warm_start.is_on()) {
      change.kind = ChangeKind::kOutput;
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

PredictionEffect effect_on_predictions(const ConfigChange& change) {
  for (const PredictionRule& rule : kPredictionRules) {
    if (change.key.starts_with(rule.begin) && change.key.ends_with(rule.end)) {
      return {rule.reason, rule.is_fit};
    }
  }
  return {};
}

}  // namespace satrap::checkpoint
