#include "satrap/job/table_config.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::job {
namespace {

constexpr const char* kOwn = "own";
constexpr const char* kDefault = "default";

/// Names in the configuration, in the order of their enumerators.
const std::vector<std::string> kOptimizers(std::begin(kRowOptimizerNames),
                                           std::end(kRowOptimizerNames));
const std::vector<std::string> kWeightTypes(std::begin(kFloatTypeNames), std::end(kFloatTypeNames));
const std::vector<std::string> kInits(std::begin(table::kInitNames), std::end(table::kInitNames));
const std::vector<std::string> kPoolings(kPoolingNames.begin(), kPoolingNames.end());

template <class Enum>
Enum parse(const std::string& name, const std::vector<std::string>& names) {
  const auto it = std::find(names.begin(), names.end(), name);
  SATRAP_CHECK(it != names.end(), "'", name, "' has passed validation");
  return static_cast<Enum>(it - names.begin());
}

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw Error(ErrorCode::kInvalidConfig, concat(path, ": ", reason));
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// An option of the optimizer that some types do not have.
struct SpecificOption {
  const char* name;
  double RowOptimizerConfig::* value;
  std::vector<std::string> users;
};
const std::vector<SpecificOption> kSpecificOptions = {
    {"eps", &RowOptimizerConfig::eps, {"adagrad", "rowwise_adagrad", "adam"}},
    {"initial_accumulator",
     &RowOptimizerConfig::initial_accumulator,
     {"adagrad", "rowwise_adagrad", "ftrl"}},
    {"beta1", &RowOptimizerConfig::beta1, {"adam"}},
    {"beta2", &RowOptimizerConfig::beta2, {"adam"}},
    {"beta", &RowOptimizerConfig::beta, {"ftrl"}},
    {"l1", &RowOptimizerConfig::l1, {"ftrl"}},
    {"l2", &RowOptimizerConfig::l2, {"ftrl"}}};

table::TableSpec make_table(const std::string& name,
                            std::int64_t number,
                            const TableConfig& config,
                            std::int64_t extra_columns) {
  const RowOptimizerConfig& from = config.optimizer;
  table::TableSpec spec;
  spec.name = name;
  spec.id = static_cast<TableId>(number);
  spec.dim = config.dim + extra_columns;
  spec.weights = parse<FloatType>(config.weights, kWeightTypes);
  spec.limits = {.capacity_rows = config.capacity_rows,
                 .ttl_steps = config.ttl_steps,
                 .admit_after = config.admit_after};
  spec.init.type = parse<table::InitType>(config.init.type, kInits);
  spec.init.scale = static_cast<float>(config.init.scale);
  spec.optimizer.type = parse<RowOptimizerType>(from.type, kOptimizers);
  spec.optimizer.lr = static_cast<float>(from.lr);
  spec.optimizer.weight_decay = static_cast<float>(from.weight_decay);
  spec.optimizer.eps = static_cast<float>(from.eps);
  spec.optimizer.initial_accumulator = static_cast<float>(from.initial_accumulator);
  spec.optimizer.beta1 = static_cast<float>(from.beta1);
  spec.optimizer.beta2 = static_cast<float>(from.beta2);
  spec.optimizer.ftrl_beta = static_cast<float>(from.beta);
  spec.optimizer.ftrl_l1 = static_cast<float>(from.l1);
  spec.optimizer.ftrl_l2 = static_cast<float>(from.l2);
  spec.schedule = from.schedule;
  return spec;
}

void check_feature_names(const std::map<std::string, FeatureConfig>& features,
                         const std::vector<data::SchemaFeature>& schema_features) {
  std::vector<std::string> known;
  for (const data::SchemaFeature& feature : schema_features) {
    if (feature.name == kDefault) {
      refuse("features.default",
             "'default' names the settings of all other features and cannot be "
             "the name of a feature; rename it in the schema");
    }
    known.push_back(feature.name);
  }
  for (const auto& [name, config] : features) {
    if (name == kDefault || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string guess = nearest(name, known);
    refuse("features." + name,
           concat("the schema has no feature '", name, "'",
                  guess.empty() ? "" : concat("; did you mean '", guess, "'?")));
  }
}

/// Name of the table of each feature of the schema.
std::vector<std::string> table_names(const std::map<std::string, FeatureConfig>& features,
                                     const std::vector<data::SchemaFeature>& schema_features) {
  std::vector<std::string> names;
  for (const data::SchemaFeature& feature : schema_features) {
    const std::string table = entry_or_default(features, feature.name).table;
    if (table == kDefault) {
      const std::string entry = features.contains(feature.name) ? feature.name : kDefault;
      refuse(concat("features.", entry, ".table"),
             "'default' names the settings of all other tables and cannot be the name of a table");
    }
    names.push_back(table == kOwn ? feature.name : table);
  }
  return names;
}

}  // namespace

void RowOptimizerConfig::visit(ConfigVisitor& v) {
  v.field("type", type,
          "Optimizer of the rows; only rows that occur in a batch are updated. adagrad has one "
          "accumulator per weight, rowwise_adagrad one per row; adam is lazy, as "
          "torch.optim.SparseAdam; ftrl is FTRL-proximal.",
          {.one_of = kOptimizers});
  v.field("lr", lr, "Learning rate, before the schedule.", {.min = 0, .min_exclusive = true});
  v.field("weight_decay", weight_decay,
          "L2: adds this times the weights to the gradient of the rows in a batch.", {.min = 0});
  v.field("eps", eps, "adagrad, rowwise_adagrad, adam: added to the denominator.",
          {.min = 0, .min_exclusive = true});
  v.field("initial_accumulator", initial_accumulator,
          "adagrad, rowwise_adagrad, ftrl: initial value of the sum of squared gradients.",
          {.min = 0});
  v.field("beta1", beta1, "adam: decay of the mean of gradients.", {.min = 0, .max = 0.999999});
  v.field("beta2", beta2, "adam: decay of the mean of squared gradients.",
          {.min = 0, .max = 0.999999});
  v.field("beta", beta, "ftrl: the rate of a weight is lr / (beta + sqrt(sum of squares)).",
          {.min = 0});
  v.field("l1", l1, "ftrl: weights that matter less than this are exactly 0.", {.min = 0});
  v.field("l2", l2, "ftrl: L2 in the proximal step.", {.min = 0});
  v.section("schedule", schedule, "Learning rate over steps.");
}

void RowInitConfig::visit(ConfigVisitor& v) {
  v.field("type", type,
          "Initial weights of a row; a function of the seed, the table's name and the id.",
          {.one_of = kInits});
  v.field("scale", scale,
          "uniform: in [-scale, scale). normal: the standard deviation. constant: the value.");
}

void TableConfig::visit(ConfigVisitor& v) {
  v.field("dim", dim, "Weights per row.", {.min = 1, .max = 65536});
  v.field("weights", weights,
          "How weights are stored. bf16 and fp16 take half the memory and are rounded "
          "stochastically after every update; the optimizer's state stays fp32.",
          {.one_of = kWeightTypes});
  v.field("capacity_rows", capacity_rows,
          "Maximum number of rows, rounded up to a multiple of 4096; the least recently used are "
          "evicted. Steps in flight may need some more. 0: no limit.",
          {.min = 0});
  v.field("ttl_steps", ttl_steps,
          "Evict rows not used for this many steps, at most 1/16 of them later. 0: never.",
          {.min = 0});
  v.field("admit_after", admit_after,
          "Number of steps that must use an id before it gets a row; until then it is read as "
          "zeros. At most as many ids are counted as rows are kept.",
          {.min = 1, .max = 1'000'000});
  v.section("optimizer", optimizer, "How rows are trained.");
  v.section("init", init, "Initial weights of rows.");
}

void TableConfig::validate(const std::string& path) const { validate(path, TableConfig{}); }

void TableConfig::validate(const std::string& path, const TableConfig& fallback) const {
  for (const SpecificOption& option : kSpecificOptions) {
    const double value = optimizer.*option.value;
    if (value == RowOptimizerConfig{}.*option.value) continue;
    if (value == fallback.optimizer.*option.value && &fallback != this) continue;
    if (std::find(option.users.begin(), option.users.end(), optimizer.type) != option.users.end()) {
      continue;
    }
    refuse(concat(path, ".optimizer.", option.name),
           concat("not used by type '", optimizer.type, "' (only by ", join(option.users),
                  "): leave it out"));
  }
  if (optimizer.type == "ftrl" && optimizer.beta == 0.0 && optimizer.initial_accumulator == 0.0) {
    refuse(path + ".optimizer.beta",
           "0 needs initial_accumulator > 0, else the first step has an infinite rate");
  }
  if (init.type != "constant" && init.scale < 0.0) {
    refuse(path + ".init.scale",
           concat("must not be negative for ", init.type, ", got ", init.scale));
  }
  if (admit_after > 1 && capacity_rows == 0 && ttl_steps == 0) {
    refuse(path + ".admit_after",
           concat(admit_after,
                  " needs capacity_rows or ttl_steps, which also bound how many ids are "
                  "counted"));
  }
  optimizer.schedule.validate(path + ".optimizer.schedule");
}

void FeatureConfig::visit(ConfigVisitor& v) {
  v.field(
      "table", table,
      "Table of the feature's rows. own: a table with the feature's name. Features that name the "
      "same table share its rows.");
  v.field(
      "pooling", pooling,
      "How the rows of a bag become one vector: sum, mean or sqrtn (sum over the root of the sum "
      "of squared weights); or sequence: all of them in order, up to the schema's max_length, "
      "with a mask.",
      {.one_of = kPoolings});
}

ResolvedSpecs resolve_specs(const std::map<std::string, TableConfig>& tables,
                            const std::map<std::string, FeatureConfig>& features,
                            const std::vector<data::SchemaFeature>& schema_features,
                            std::int64_t extra_columns) {
  check_feature_names(features, schema_features);
  const std::vector<std::string> names = table_names(features, schema_features);
  const std::set<std::string> sorted_names(names.begin(), names.end());
  for (const auto& [name, config] : tables) {
    if (name == kDefault || sorted_names.contains(name)) continue;
    const std::string guess = nearest(name, {sorted_names.begin(), sorted_names.end()});
    refuse("tables." + name, concat("no feature uses this table",
                                    guess.empty() ? "" : concat("; did you mean '", guess, "'?")));
  }
  if (std::ssize(sorted_names) > kMaxTables) {
    refuse("tables", concat("at most ", kMaxTables, " tables, got ", sorted_names.size(),
                            "; let features share tables"));
  }

  ResolvedSpecs specs;
  for (const std::string& name : sorted_names) {
    specs.tables.push_back(
        make_table(name, std::ssize(specs.tables), entry_or_default(tables, name), extra_columns));
  }
  for (std::size_t f = 0; f < names.size(); ++f) {
    const data::SchemaFeature& from = schema_features[f];
    FeatureSpec feature{.name = from.name};
    feature.table =
        static_cast<TableId>(std::distance(sorted_names.begin(), sorted_names.find(names[f])));
    feature.pooling = parse<Pooling>(entry_or_default(features, from.name).pooling, kPoolings);
    if (feature.pooling == Pooling::kSequence) {
      if (from.max_length < 1) {
        const std::string entry = features.contains(from.name) ? from.name : kDefault;
        refuse(concat("features.", entry, ".pooling"),
               concat("sequence needs max_length for feature '", from.name, "' in the schema"));
      }
      feature.max_length = from.max_length;
    }
    specs.features.push_back(std::move(feature));
  }
  return specs;
}

}  // namespace satrap::job
