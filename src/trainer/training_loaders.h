#pragma once

#include <memory>

#include "satrap/job/job_config.h"
#include "satrap/loader/loaders.h"
#include "satrap/pipeline/cluster.h"

namespace satrap::trainer {

/// The loaders that read the training data for this rank; null if it reads them itself. Throws
/// Error(kInvalidConfig) if data.loaders.store is the job's and there is none, NetError if the
/// store cannot be reached.
std::unique_ptr<loader::Loaders> open_loaders(const job::JobConfig& config,
                                              const pipeline::Cluster& cluster);

}  // namespace satrap::trainer
