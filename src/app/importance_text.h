#pragma once

#include <string>

#include "satrap/checkpoint/continuation.h"
#include "satrap/trainer/importance.h"

namespace satrap::app {

/// A table of the inputs for the terminal, the most important first.
std::string describe_importance(const trainer::Importance& importance);

/// Writes importance.json into the folder of the run to which the checkpoint belongs, where reports
/// find it, and returns its path. "": the checkpoint is in a store, or in no run.
std::string write_importance(const trainer::Importance& importance,
                             const checkpoint::UsedCheckpoint& checkpoint);

}  // namespace satrap::app
