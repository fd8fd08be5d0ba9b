#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "satrap/job/feature_spec.h"
#include "satrap/kernels/row_layout.h"
#include "satrap/kernels/row_optimizer.h"
#include "satrap/table/table_spec.h"

namespace satrap::embedding {

/// Tables whose rows a device keeps in one cache and processes in one call: equal in dim, type of
/// weights and type of optimizer. Everything else is per table (TableStep).
struct TableGroup {
  RowLayout layout;  // of their rows
  RowOptimizerType optimizer{};
  std::vector<TableId> tables = {};        // ascending; at least one
  std::vector<std::size_t> features = {};  // that read them, by their numbers in the job,
                                           // ascending; none if nothing reads the tables
};

/// The table groups of a job, in the order of their first tables: every table is in one of them.
/// Immutable, so any thread may ask.
class TableGroups {
 public:
  /// `tables[i]` has TableId i; `seed` is the job's, as for its tables. Throws
  /// Error(kInvalidConfig), naming the table, if a device cannot hold its rows: they have more than
  /// backend::kMaxDim weights, or the table has the last number that a key has room for, which
  /// devices reserve.
  TableGroups(const std::vector<job::FeatureSpec>& features,
              const std::vector<table::TableSpec>& tables,
              std::uint64_t seed);

  const std::vector<TableGroup>& groups() const { return groups_; }
  std::size_t group_of(TableId table) const;  // its place in groups()

  /// Parameters of the updates of `step`, from 1 to kMaxStep, for each table: learning rate by its
  /// schedule, its hyperparameters, seed of its rounding. One array for all groups, since devices
  /// look a table up by its number in the job.
  void fill_steps(std::int64_t step, std::span<TableStep> steps) const;  // [num_tables] out

 private:
  std::vector<TableGroup> groups_;
  struct OfTable {
    table::TableSpec spec;
    std::uint64_t seed;
    std::size_t group;
  };
  std::vector<OfTable> tables_;
};

}  // namespace satrap::embedding
