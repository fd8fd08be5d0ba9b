#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace satrap::app {

/// Keys in their order, each with what a run has there.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// The configuration of a run (of read_run), where an element of a list is found by its name, or
/// its column if it has none, wherever it stands: data.schema.features.city.separator.
Settings settings_by_name(const nlohmann::ordered_json& run);

/// The differences of runs' configurations: for each run, the settings that not all of them have.
/// An element of a list that only some have, such as a feature, is no set of keys: the list has
/// "+city" in the runs that have it, and "-city" in the others. Where a run is kept is left out.
std::vector<Settings> config_differences(const std::vector<nlohmann::ordered_json>& runs);

}  // namespace satrap::app
