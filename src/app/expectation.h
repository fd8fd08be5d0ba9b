#pragma once

#include <nlohmann/json_fwd.hpp>

#include "satrap/job/job_config.h"

namespace satrap::app {

/// Throws Error(kDiverged) if the summary of a finished run has another AUC than train.expect says.
/// Logs why nothing is expected of a run with too few examples.
void check_expectation(const job::ExpectConfig& expect, const nlohmann::ordered_json& summary);

}  // namespace satrap::app
