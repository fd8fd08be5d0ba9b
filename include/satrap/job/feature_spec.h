#pragma once

#include <cstdint>
#include <string>

#include "satrap/core/ids.h"
#include "satrap/kernels/pooling.h"

namespace satrap::job {

/// One feature of a batch: which table it reads and where its output goes.
struct FeatureSpec {
  std::string name;
  TableId table{};
  Pooling pooling = Pooling::kSum;
  std::int64_t max_length = 1;  // of a sequence; else 1
};

}  // namespace satrap::job
