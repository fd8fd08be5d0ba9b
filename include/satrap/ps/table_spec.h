#pragma once

#include <cstdint>
#include <string>

#include "satrap/core/ids.h"
#include "satrap/core/lr_schedule.h"
#include "satrap/kernels/row_optimizer.h"
#include "satrap/ps/row_init.h"

namespace satrap::ps {

/// A named set of rows.
struct TableSpec {
  std::string name;
  TableId id{};
  std::int64_t dim = 0;  // floats of weights per row
  RowInit init;
  RowOptimizer optimizer;
  LrSchedule schedule;
};

}  // namespace satrap::ps
