#include "satrap/embedding/table_groups.h"

#include <algorithm>

#include "satrap/backend/cache_size.h"
#include "satrap/core/error.h"

namespace satrap::embedding {
namespace {

void check_for_device(const table::TableSpec& spec) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidConfig, concat("table '", spec.name, "': ", why));
  };
  if (spec.dim < 1 || spec.dim > backend::kMaxDim) {
    refuse(concat("rows on a device have 1 to ", backend::kMaxDim, " weights, not ", spec.dim));
  }
  // One key of the last table number has the tag by which plans mark unused ids.
  if (static_cast<std::int64_t>(spec.id) >= kMaxTables - 1) {
    refuse(concat("a job on a device has at most ", kMaxTables - 1, " tables"));
  }
}

bool belongs(const table::TableSpec& spec, const TableGroup& group) {
  return spec.dim == group.layout.dim && spec.weights == group.layout.weight_type &&
         spec.optimizer.type == group.optimizer;
}

}  // namespace

TableGroups::TableGroups(const std::vector<job::FeatureSpec>& features,
                         const std::vector<table::TableSpec>& tables,
                         std::uint64_t seed) {
  for (const table::TableSpec& spec : tables) {
    SATRAP_CHECK(static_cast<std::size_t>(spec.id) == tables_.size(), "table '", spec.name,
                 "' has number ", static_cast<int>(spec.id), " at place ", tables_.size());
    check_for_device(spec);
    auto group =
        std::ranges::find_if(groups_, [&](const TableGroup& g) { return belongs(spec, g); });
    if (group == groups_.end()) {
      groups_.push_back({.layout = spec.layout(), .optimizer = spec.optimizer.type});
      group = groups_.end() - 1;
    }
    group->tables.push_back(spec.id);
    tables_.push_back({spec, table::RowInit::table_seed(seed, spec.name),
                       static_cast<std::size_t>(group - groups_.begin())});
  }
  for (std::size_t f = 0; f < features.size(); ++f) {
    groups_[group_of(features[f].table)].features.push_back(f);
  }
}

std::size_t TableGroups::group_of(TableId table) const {
  const auto number = static_cast<std::size_t>(table);
  SATRAP_CHECK(number < tables_.size(), "table number ", number, " of ", tables_.size());
  return tables_[number].group;
}

void TableGroups::fill_steps(std::int64_t step, std::span<TableStep> steps) const {
  SATRAP_CHECK(step >= 1 && step <= kMaxStep, "step ", step);
  SATRAP_CHECK(steps.size() == tables_.size(), "steps of ", steps.size(), " tables, not ",
               tables_.size());
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    steps[t] = tables_[t].spec.table_step(tables_[t].seed, step);
  }
}

}  // namespace satrap::embedding
