#pragma once

#include "satrap/job/cluster_config.h"

namespace satrap::pipeline {

/// The number of the GPU that this rank uses, of the `num_gpus` > 0 that it sees. The ranks of a
/// node have one each: their own by LOCAL_RANK, else by RANK where the ranks of a node follow each
/// other. One that sees a single GPU takes that: it shares it with the others, or
/// CUDA_VISIBLE_DEVICES gives each its own. Throws Error(kUnavailable) if there are more ranks than
/// several GPUs.
int gpu_of_rank(const job::ClusterConfig& cluster, int num_gpus);

}  // namespace satrap::pipeline
