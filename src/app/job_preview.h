#pragma once

#include <string>

#include "satrap/job/job_config.h"
#include "satrap/pipeline/model.h"

namespace satrap::app {

/// Describes what a job reads: its columns and first batch, of training and of evaluation. Throws
/// as reading does.
std::string describe_data(const job::JobConfig& config);

/// The same, then its model, tables, memory and run directory. Nothing is trained or written.
/// `make_network`: as in trainer::TrainOptions.
std::string describe_dry_run(const job::JobConfig& config,
                             const pipeline::MakeNetwork& make_network);

}  // namespace satrap::app
