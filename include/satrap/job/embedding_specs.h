#pragma once

#include <cstdint>
#include <vector>

#include "satrap/data/schema.h"
#include "satrap/job/feature_spec.h"
#include "satrap/job/job_config.h"
#include "satrap/table/table_spec.h"

namespace satrap::job {

/// The tables and features of a job: the same in every process of it.
struct EmbeddingSpecs {
  std::vector<table::TableSpec> tables;  // by TableId
  std::vector<FeatureSpec> features;
  std::uint64_t seed = 0;
};

/// Throws Error(kInvalidConfig) as resolve_specs does. Needs no libtorch.
EmbeddingSpecs embedding_specs(const JobConfig& config, const data::Schema& schema);

}  // namespace satrap::job
