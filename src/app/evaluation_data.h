#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace satrap::app {

/// The evaluation rows of a run (of read_run) as people say it: "20 % of clicks.csv by hash".
std::string describe_evaluation_data(const nlohmann::ordered_json& run);

/// The names of the files, or what else it is, that a run was trained on: "day_0.csv and 3 more".
std::string describe_training_data(const nlohmann::ordered_json& run);

/// Runs that were evaluated on the same rows with the same labels, as far as they have recorded it,
/// and can therefore be ranked.
struct ComparableRuns {
  std::vector<std::size_t> runs;  // their places in the list, ascending
  /// The differences from the first such group: "data.eval.path is [b.csv], not [a.csv]".
  std::vector<std::string> differences = {};
};

/// All runs, each in one group, in the order of their first ones. Compared are: files, filter, part
/// and label of the configurations, with paths as written or as found from their folders; of runs
/// that have evaluated also the number of examples, and of positive ones, which differ where a file
/// of the same name holds other rows.
std::vector<ComparableRuns> comparable_runs(const std::vector<nlohmann::ordered_json>& runs);

}  // namespace satrap::app
