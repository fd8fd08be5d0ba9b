#pragma once

#include <cstdint>
#include <string>

#include "satrap/core/ids.h"
#include "satrap/core/lr_schedule.h"
#include "satrap/kernels/row_optimizer.h"
#include "satrap/kernels/weight_type.h"
#include "satrap/ps/row_init.h"
#include "satrap/ps/row_limits.h"

namespace satrap::ps {

/// A named set of rows.
struct TableSpec {
  std::string name;
  TableId id{};
  std::int64_t dim = 0;  // weights per row
  WeightType weights = WeightType::kFp32;
  RowLimits limits;
  RowInit init;
  RowOptimizer optimizer;
  LrSchedule schedule;
};

}  // namespace satrap::ps
