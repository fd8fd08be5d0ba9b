#pragma once

#include <string>
#include <vector>

#include "satrap/job/job_config.h"

namespace satrap::pipeline {

/// job::read_job for this process's place in its cluster, which the environment has, plus the check
/// that the model fits the features. `device`, `train.precision` and `data.batch_size: auto` become
/// what suits this machine and the data. Throws Error(kInvalidConfig).
job::JobConfig load_job(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace satrap::pipeline
