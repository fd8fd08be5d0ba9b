#pragma once

#include "satrap/core/config.h"
#include "satrap/data/config.h"

namespace satrap::data {

/// Checks the rules that involve several fields; opens no file. Throws Error(kInvalidConfig)
/// starting with the place of the value ("train.yaml:12: ") if `origins` has it.
void validate(const DataConfig& config, const ConfigOrigins& origins = {});

}  // namespace satrap::data
