#include "src/pipeline/gpu_of_rank.h"

#include <cstdint>

#include "satrap/core/error.h"

namespace satrap::pipeline {

int gpu_of_rank(const job::ClusterConfig& cluster, int num_gpus) {
  SATRAP_CHECK(num_gpus > 0, num_gpus, " GPUs");
  if (num_gpus == 1) return 0;
  const std::int64_t num_local =
      cluster.num_local_ranks > 0 ? cluster.num_local_ranks : cluster.num_ranks;
  const std::int64_t local = cluster.local_rank.value_or(cluster.rank % num_local);
  if (local >= num_gpus) {
    throw Error(ErrorCode::kUnavailable,
                concat("device: this node has ", num_gpus, " GPUs for ", num_local,
                       " ranks; start at most ", num_gpus, " there, or write cpu"));
  }
  return static_cast<int>(local);
}

}  // namespace satrap::pipeline
