#pragma once

#include <cstdint>
#include <string>

#include "satrap/core/ids.h"
#include "satrap/kernels/pooling.h"

namespace satrap::job {

/// One feature of a batch: the table that it reads and the place of its output.
struct FeatureSpec {
  std::string name;
  TableId table{};
  Pooling pooling = Pooling::kSum;
  std::int64_t max_length = 1;  // for a sequence; else 1
};

}  // namespace satrap::job
