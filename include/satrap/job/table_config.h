#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/core/config.h"
#include "satrap/core/float_type.h"
#include "satrap/core/lr_schedule.h"
#include "satrap/data/schema.h"
#include "satrap/job/feature_spec.h"
#include "satrap/kernels/pooling.h"
#include "satrap/kernels/row_optimizer.h"
#include "satrap/table/row_init.h"
#include "satrap/table/table_spec.h"

namespace satrap::job {

/// `optimizer` of a table. Formulas: satrap/kernels/row_optimizer.h.
struct RowOptimizerConfig {
  static constexpr std::string_view kPlain = "type";

  RowOptimizerType type = RowOptimizerType::kAdagrad;
  double lr = 0.02;
  double weight_decay = 0.0;
  double eps = 1e-8;
  double initial_accumulator = 0.0;
  double beta1 = 0.9, beta2 = 0.999;
  double beta = 1.0, l1 = 0.0, l2 = 0.0;
  LrSchedule schedule = {};
  void visit(ConfigVisitor& v);
};

/// `init` of a table.
struct RowInitConfig {
  static constexpr std::string_view kPlain = "type";

  table::InitType type = table::InitType::kUniform;
  double scale = 0.01;
  void visit(ConfigVisitor& v);
};

/// One entry of `tables`.
struct TableConfig {
  std::int64_t dim = 16;
  FloatType weights = FloatType::kFp32;
  std::int64_t capacity_rows = 0;
  std::int64_t ttl_steps = 0;
  std::int64_t admit_after = 1;
  RowOptimizerConfig optimizer;
  RowInitConfig init;
  void visit(ConfigVisitor& v);

  /// Throws Error(kInvalidConfig), with a message that begins with the path of the field, if fields
  /// contradict each other or one that the optimizer does not use has been set. "Set" means
  /// different from the default and from `fallback`, the entry `default` that this one started
  /// from.
  void validate(const std::string& path) const;
  void validate(const std::string& path, const TableConfig& fallback) const;
};

/// One entry of `features`.
struct FeatureConfig {
  std::string table = "own";  // "own": a table of the feature's name
  Pooling pooling = Pooling::kSum;
  void visit(ConfigVisitor& v);
};

/// The entry of a name in `tables` or `features`: its own, else `default`.
template <class Config>
Config entry_or_default(const std::map<std::string, Config>& entries, const std::string& name) {
  if (const auto it = entries.find(name); it != entries.end()) return it->second;
  if (const auto it = entries.find("default"); it != entries.end()) return it->second;
  return Config{};
}

/// The tables and features of a job. tables[i] has TableId i; features are in the schema's order.
struct ResolvedSpecs {
  std::vector<table::TableSpec> tables;
  std::vector<FeatureSpec> features;
};

/// Gives every feature of the schema its table and pooling: from the entry of its name in
/// `features`, else from `default`. A table that a feature names is made from the entry of that
/// name in `tables`, else from `default`. Tables are numbered in the order of their names, so
/// adding one may change the numbers of others; nothing that outlives the process depends on
/// numbers (rows are initialised by the table's name, checkpoints name tables).
///
/// `extra_columns`: columns that the model needs before the `dim` configured ones (the weight
/// of the first-order term, if any, is column 0).
///
/// Throws Error(kInvalidConfig) with a message that begins with the path of the entry: for a
/// feature that the schema does not have, a table that no feature uses, a sequence without a
/// max_length in the schema, more than kMaxTables tables.
ResolvedSpecs resolve_specs(const std::map<std::string, TableConfig>& tables,
                            const std::map<std::string, FeatureConfig>& features,
                            const std::vector<data::SchemaFeature>& schema_features,
                            std::int64_t extra_columns);

}  // namespace satrap::job
