#include "satrap/job/table_config.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::job {
namespace {

constexpr const char* kOwn = "own";
constexpr const char* kDefault = "default";

constexpr auto kOptimizers = [] {
  std::array<Choice<RowOptimizerType>, std::size(kRowOptimizers)> choices;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    choices[i] = {kRowOptimizers[i].name, static_cast<RowOptimizerType>(i)};
  }
  return choices;
}();

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw Error(ErrorCode::kInvalidConfig, concat(path, ": ", reason));
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// An option of kRowOptions in the configuration, in their order.
struct OptionField {
  float RowOptimizer::* option;
  double RowOptimizerConfig::* value;
  const char* doc;
};
constexpr OptionField kOptionFields[] = {
    {&RowOptimizer::lr, &RowOptimizerConfig::lr, "Learning rate, before the schedule."},
    {&RowOptimizer::weight_decay, &RowOptimizerConfig::weight_decay,
     "L2: adds this times the weights to the gradient of the rows in a batch."},
    {&RowOptimizer::eps, &RowOptimizerConfig::eps, "added to the denominator."},
    {&RowOptimizer::initial_accumulator, &RowOptimizerConfig::initial_accumulator,
     "initial value of the sum of squared gradients."},
    {&RowOptimizer::beta1, &RowOptimizerConfig::beta1, "decay of the mean of gradients."},
    {&RowOptimizer::beta2, &RowOptimizerConfig::beta2, "decay of the mean of squared gradients."},
    {&RowOptimizer::ftrl_beta, &RowOptimizerConfig::beta,
     "the rate of a weight is lr / (beta + sqrt(sum of squares))."},
    {&RowOptimizer::ftrl_l1, &RowOptimizerConfig::l1,
     "weights that matter less than this are exactly 0."},
    {&RowOptimizer::ftrl_l2, &RowOptimizerConfig::l2, "L2 in the proximal step."},
};
static_assert(
    std::ranges::equal(kOptionFields, kRowOptions, {}, &OptionField::option, &RowOption::value));

/// The types of optimizer that have an option which not every one has.
std::vector<std::string> users_of(const RowOption& option) {
  std::vector<std::string> users;
  for (const RowOptimizerKind& kind : kRowOptimizers) {
    if (kind.has(option.name)) users.emplace_back(kind.name);
  }
  return users;
}

table::TableSpec make_table(const std::string& name,
                            std::int64_t number,
                            const TableConfig& config,
                            std::int64_t extra_columns) {
  const RowOptimizerConfig& from = config.optimizer;
  table::TableSpec spec;
  spec.name = name;
  spec.id = static_cast<TableId>(number);
  spec.dim = config.dim + extra_columns;
  spec.weights = config.weights;
  spec.limits = {.capacity_rows = config.capacity_rows,
                 .ttl_steps = config.ttl_steps,
                 .admit_after = config.admit_after};
  spec.init.type = config.init.type;
  spec.init.scale = static_cast<float>(config.init.scale);
  spec.optimizer.type = from.type;
  for (std::size_t i = 0; i < std::size(kRowOptions); ++i) {
    spec.optimizer.*kRowOptions[i].value = static_cast<float>(from.*kOptionFields[i].value);
  }
  spec.schedule = from.schedule;
  return spec;
}

void check_feature_names(const std::map<std::string, FeatureConfig>& features,
                         const std::vector<data::SchemaFeature>& schema_features) {
  std::vector<std::string> known;
  for (const data::SchemaFeature& feature : schema_features) {
    if (feature.name == kDefault) {
      refuse("features.default",
             "'default' names the settings of all other features and cannot be the name of a "
             "feature; rename it in the schema");
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
  v.choice("type", type, kOptimizers,
           "Optimizer of the rows; only rows that occur in a batch are updated. adagrad has one "
           "accumulator per weight, rowwise_adagrad one per row; adam is lazy, as "
           "torch.optim.SparseAdam; ftrl is FTRL-proximal.",
           {.resume = impossible("the rows of the checkpoint hold the state of that optimizer")});
  for (std::size_t i = 0; i < std::size(kRowOptions); ++i) {
    const RowOption& option = kRowOptions[i];
    const OptionField& field = kOptionFields[i];
    const std::string users = join(users_of(option));
    v.field(option.name, this->*field.value, users.empty() ? field.doc : users + ": " + field.doc,
            {.min = option.min, .max = option.max, .min_exclusive = option.is_above_min});
  }
  v.section("schedule", schedule, "Learning rate over steps.");
}

void RowInitConfig::visit(ConfigVisitor& v) {
  v.choice("type", type, numbered_choices<table::InitType>(table::kInitNames),
           "Initial weights of a row; a function of the seed, the table's name and the id.");
  v.field("scale", scale,
          "uniform: in [-scale, scale). normal: the standard deviation. constant: the value.");
}

void TableConfig::visit(ConfigVisitor& v) {
  v.field("dim", dim, "Weights per row.",
          {.min = 1, .max = 65536, .resume = impossible("the checkpoint's rows have that width")});
  v.choice("weights", weights, numbered_choices<FloatType>(kFloatTypeNames),
           "How weights are stored. bf16 and fp16 take half the memory and are rounded "
           "stochastically after every update; the optimizer's state stays fp32.",
           {.resume = impossible("the checkpoint's rows are stored in that type")});
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
  for (std::size_t i = 0; i < std::size(kRowOptions); ++i) {
    const auto field = kOptionFields[i].value;
    const double value = optimizer.*field;
    if (value == RowOptimizerConfig{}.*field) continue;
    if (value == fallback.optimizer.*field && &fallback != this) continue;
    const std::vector<std::string> users = users_of(kRowOptions[i]);
    if (users.empty() || kind_of(optimizer.type).has(kRowOptions[i].name)) continue;
    refuse(concat(path, ".optimizer.", kRowOptions[i].name),
           concat("not used by type '", name_of(optimizer.type), "' (only by ", join(users),
                  "): leave it out"));
  }
  if (optimizer.type == RowOptimizerType::kFtrl && optimizer.beta == 0.0 &&
      optimizer.initial_accumulator == 0.0) {
    refuse(path + ".optimizer.beta",
           "0 needs initial_accumulator > 0, else the first step has an infinite rate");
  }
  if (init.type != table::InitType::kConstant && init.scale < 0.0) {
    refuse(path + ".init.scale",
           concat("must not be negative for ", name_of(init.type), ", got ", init.scale));
  }
  if (admit_after > 1 && capacity_rows == 0 && ttl_steps == 0) {
    refuse(path + ".admit_after",
           concat(admit_after,
                  " needs capacity_rows or ttl_steps, which also bound how many ids are counted"));
  }
  optimizer.schedule.validate(path + ".optimizer.schedule");
}

void FeatureConfig::visit(ConfigVisitor& v) {
  v.field(
      "table", table,
      "Table of the feature's rows. own: a table with the feature's name. Features that name the "
      "same table share its rows.",
      {.resume = impossible("ids would mean rows of another table")});
  v.choice(
      "pooling", pooling, numbered_choices<Pooling>(kPoolingNames),
      "How the rows of a bag become one vector: sum, mean or sqrtn (sum over the root of the sum "
      "of squared weights); or sequence: all of them in order, up to the schema's max_length, with "
      "a mask.",
      {.resume = impossible("the network was trained on the output of that pooling")});
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
    feature.pooling = entry_or_default(features, from.name).pooling;
    if (feature.pooling == Pooling::kSequence) {
      if (from.max_length < 1) {
        const std::string entry = features.contains(from.name) ? from.name : kDefault;
        refuse(concat("features.", entry, ".pooling"),
               concat("sequence needs max_length for feature '", from.name,
                      "' in the schema; a cross or a part of a time cannot be one"));
      }
      feature.max_length = from.max_length;
    }
    specs.features.push_back(std::move(feature));
  }
  return specs;
}

}  // namespace satrap::job
