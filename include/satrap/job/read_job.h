#pragma once

#include <string>
#include <vector>

#include "satrap/core/config.h"
#include "satrap/job/cluster_config.h"
#include "satrap/job/job_config.h"

namespace satrap::job {

/// Reads, completes and validates a job file; its paths are then absolute. Does not check whether
/// the model fits the features, which only the dense network knows: pipeline::load_job does.
/// `device: auto` stays, if the job can run on a CPU or on a GPU. `cluster`: where it runs.
JobConfig read_job(const std::string& path,
                   const std::vector<std::string>& overrides,
                   ConfigOrigins& origins,
                   const ClusterConfig& cluster = {});

/// `device: auto` becomes cuda if there is a GPU and the job can run on it, else cpu. Throws
/// Error(kInvalidConfig) if the job can run on neither.
void choose_device(JobConfig& config,
                   const ConfigOrigins& origins,
                   bool has_gpu,
                   const ClusterConfig& cluster = {});

}  // namespace satrap::job
