#pragma once

#include <string>
#include <vector>

#include "satrap/job/job_config.h"

namespace satrap::pipeline {

/// job::read_job for this process's place in its cluster, which the environment has, plus the check
/// that the model fits the features. `device`, `train.precision` and `data.batch_size: auto` become
/// what suits this machine and the data. A network in Python is known to the program that computes
/// it alone, and is not checked. Throws Error(kInvalidConfig).
job::JobConfig load_job(const std::string& path, const std::vector<std::string>& overrides);

/// The same for a program that computes the dense network and its optimizer: the model is 'python',
/// and dense_optimizer has its defaults, whatever the file says. `device: auto` is the CPU. Where
/// the environment says that there are shards, `embedding.store: ps` is the default.
job::JobConfig load_job_of_program(const std::string& path, std::vector<std::string> overrides);

}  // namespace satrap::pipeline
