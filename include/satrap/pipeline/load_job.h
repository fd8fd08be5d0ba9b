#pragma once

#include <string>
#include <vector>

#include "satrap/job/job_config.h"

namespace satrap::pipeline {

/// job::read_job, plus the check that the model fits the features; `train.precision: auto` becomes
/// the precision that this machine multiplies fastest. Throws Error(kInvalidConfig).
job::JobConfig load_job(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace satrap::pipeline
