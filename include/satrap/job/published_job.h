#pragma once

#include <atomic>

#include "satrap/job/job_config.h"
#include "satrap/net/rendezvous.h"

namespace satrap::job {

/// For shards that are started without a configuration, because a program makes it: rank 0 says it
/// in the store where the processes of the job meet. Both functions throw as the store does.
void publish_job(const JobConfig& job, net::Rendezvous& store);

/// Blocks until a job is published. Throws NetError(kStopped) once `stop` is set.
JobConfig wait_for_job(net::Rendezvous& store, const std::atomic<bool>& stop);

}  // namespace satrap::job
