#pragma once

#include <string>
#include <vector>

#include "satrap/core/config.h"
#include "satrap/job/job_config.h"

namespace satrap::checkpoint {

struct ConfigChange {
  std::string key;            // "tables.items.optimizer.lr"
  std::string before, after;  // as in a configuration file
  ChangeKind kind = ChangeKind::kTraining;
  std::string reason = {};  // why it is impossible
};

/// The keys whose meaning differs: a table or feature without an entry has that of `default`, and a
/// schema is compared by what it describes, however it was given. Features and numeric inputs have
/// their names in the key.
std::vector<ConfigChange> config_changes(const job::JobConfig& before, const job::JobConfig& after);

/// The effect of a change on predictions with the checkpoint's rows and network.
struct PredictionEffect {
  std::string reason;  // why they would be others; "": they would not
  bool is_fit = true;  // false: rows or network do not fit, and there would be none
};
PredictionEffect effect_on_predictions(const ConfigChange& change);

}  // namespace satrap::checkpoint
