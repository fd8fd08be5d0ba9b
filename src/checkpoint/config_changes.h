#pragma once

#include <string>
#include <vector>

#include "satrap/job/job_config.h"

namespace satrap::checkpoint {

/// What a changed key means to a run that continues from a checkpoint.
enum class ChangeKind {
  kImpossible,  // the checkpoint does not fit any more
  kInput,       // the next steps read other rows of data, or other versions of embedding rows
  kTraining,    // the next steps are otherwise trained otherwise
  kOutput,      // what is learned stays the same
};

struct ConfigChange {
  std::string key;            // "tables.items.optimizer.lr"
  std::string before, after;  // as a configuration is written
  ChangeKind kind = ChangeKind::kTraining;
  std::string reason = {};  // why it is impossible
};

/// The keys that differ in what they mean: a table or feature without an entry has that of
/// `default`, and a schema is compared by what it describes, however it was given. Features and
/// numeric inputs have their names in the key.
std::vector<ConfigChange> config_changes(const job::JobConfig& before, const job::JobConfig& after);

}  // namespace satrap::checkpoint
