#pragma once

#include <functional>
#include <string>

#include "satrap/job/job_config.h"
#include "satrap/trainer/trainer.h"

namespace satrap::app {

/// Each run of a job whose run_dir nobody named has a folder of its own: sets it. What starts a job
/// again without --resume is to be told that there is a run, not to begin another.
void choose_run_dir(job::JobConfig& config, const trainer::TrainOptions& options);

/// Trains a job as `satrap train` does: shows the progress, writes the report, and calls `tell`
/// with the words about a finished run that belong to standard output. `options` has what the
/// command line or the program says; the description of the machine is added here, and the display
/// unless somebody else looks at the reports.
/// Throws as trainer::train, and Error(kDiverged) if the result is not as train.expect says.
trainer::TrainOutcome train_job(const job::JobConfig& config,
                                trainer::TrainOptions options,
                                const std::function<void(const std::string&)>& tell);

}  // namespace satrap::app
