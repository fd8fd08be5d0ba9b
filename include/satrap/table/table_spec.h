#pragma once

#include <cstdint>
#include <string>

#include "satrap/core/float_type.h"
#include "satrap/core/ids.h"
#include "satrap/core/lr_schedule.h"
#include "satrap/kernels/row_layout.h"
#include "satrap/kernels/row_optimizer.h"
#include "satrap/table/row_init.h"
#include "satrap/table/row_limits.h"

namespace satrap::table {

/// A named set of rows.
struct TableSpec {
  std::string name;
  TableId id{};
  std::int64_t dim = 0;  // weights per row
  FloatType weights = FloatType::kFp32;
  RowLimits limits;
  RowInit init;
  RowOptimizer optimizer;
  LrSchedule schedule;

  RowLayout layout() const { return RowLayout::of(dim, weights, optimizer.type); }
};

}  // namespace satrap::table
