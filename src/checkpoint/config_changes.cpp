#include "src/checkpoint/config_changes.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "satrap/core/change_rules.h"
#include "satrap/core/error.h"
#include "satrap/data/schema.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/job/label_loss.h"
#include "satrap/job/table_config.h"

namespace satrap::checkpoint {
namespace {

/// The effect of a change on predictions. The first match counts; without a match, nothing.
struct PredictionRule {
  std::string_view begin, end;
  bool is_fit;
  const char* reason;  // "": none
};

constexpr const char* kOtherInputs = "the network was trained on inputs read as before";
constexpr const char* kUntrained = "it gives ids without a row their weights";
constexpr const char* kOtherOutputs = "the network predicts the label as it was";

constexpr PredictionRule kPredictionRules[] = {
    {"seed", "", true, kUntrained},
    {"data.schema.label", ".type", false, kOtherOutputs},
    {"data.schema.label", ".classes", false, kOtherOutputs},
    {"data.schema.label", ".values", false, kOtherOutputs},
    {"data.schema.label", "", true, ""},  // and labels: check_predictions compares their names
    {"data.schema.weight", "", true, ""},
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

ConfigChange classified(std::string key,
                        const ChangeRule& rule,
                        const std::string& before,
                        const std::string& after) {
  return {std::move(key), shown(before), shown(after), rule.kind, std::string(rule.reason)};
}

/// `outer`: of the section that holds what is compared.
template <class Config>
void compare(const std::string& prefix,
             const Config& before,
             const Config& after,
             std::vector<ConfigChange>& changes,
             ChangeRule outer = {}) {
  std::map<std::string, std::string> old;
  ChangeRules rules = change_rules(after, outer);
  rules.merge(change_rules(before, outer));
  const auto values_of = [](const Config& config) {
    return config_values(dump_config(config), "configuration");
  };
  for (const ConfigValue& value : values_of(before)) old[value.path] = value.text;
  const auto add = [&](const std::string& path, const std::string& from, const std::string& to) {
    changes.push_back(classified(prefix + path, rules.at(path), from, to));
  };
  for (const ConfigValue& value : values_of(after)) {
    const auto found = old.extract(value.path);
    const std::string text = found ? found.mapped() : "nothing";
    if (text != value.text) add(value.path, text, value.text);
  }
  for (const auto& [path, text] : old) add(path, text, "nothing");  // entries that are gone
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
    compare(concat(key, ".", now[i], "."), before[i], after[i], changes, kOtherInput);
  }
}

std::vector<job::Loss> losses_of(const job::ModelConfig& model, const data::Schema& schema) {
  std::vector<job::Loss> losses;
  for (const data::NamedLabelConfig& label : schema.labels) {
    losses.push_back(job::loss_of(model, label.source));
  }
  return losses;
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
    if (job::entry_or_default(after.features, feature).pooling != Pooling::kSequence) continue;
    change.kind = ChangeKind::kImpossible;
    change.reason = "the network has inputs for a sequence of that length";
  }

  job::JobConfig old = before, now = after;
  old.data.schema_name = now.data.schema_name = "";
  if (losses_of(before.model, old_schema) == losses_of(after.model, schema)) {
    old.model.loss = now.model.loss;  // auto, or what it means
  }
  for (const auto& [config, resolved] : {std::pair{&old, &old_schema}, std::pair{&now, &schema}}) {
    if (config->device == job::JobDevice::kAuto) {
      config->device = job::JobDevice::kCpu;  // before it could be anything else
    }
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
