#pragma once

#include <atomic>
#include <cstdint>

#include "satrap/job/cluster_config.h"

namespace satrap::cli {

struct LoaderOptions {
  std::int64_t num_threads = 0;  // that parse, for each rank; 0: its share of the CPUs
  job::ClusterConfig cluster;
  const std::atomic<bool>* stop = nullptr;  // set by a signal handler
};

/// Reads training data for ranks until `stop` is set. Needs no libtorch. Throws
/// Error(kInvalidConfig) without a store, NetError if it cannot be reached.
void serve_loader(const LoaderOptions& options);

}  // namespace satrap::cli
