#pragma once

#include <cstdint>

#include "satrap/backend/stream.h"
#include "satrap/backend/stream_times.h"
#include "satrap/embedding/cached_rows.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/cluster.h"

namespace satrap::pipeline {

/// What the configuration means for the cache of this rank. `stream`: on which rows are pooled, or
/// nullptr; `times` gets those of its work then.
embedding::CachedRows::Options cache_options(const job::JobConfig& config,
                                             const Cluster& cluster,
                                             std::int64_t memory_bytes,
                                             const backend::Stream* stream,
                                             backend::StreamTimes* times);

/// Says so where ranks that share a cache have a lower bound of staleness than is written.
void note_order(const job::TrainConfig& train, const Cluster& cluster);

}  // namespace satrap::pipeline
