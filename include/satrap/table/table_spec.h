#pragma once

#include <cstdint>
#include <string>

#include "satrap/core/float_type.h"
#include "satrap/core/hash.h"
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

  /// The constants of the table for updates of `step`, wherever its rows are. Weights of 16 bits
  /// are rounded by the step and the row's key: so it makes no difference which thread, shard or
  /// device has the row.
  TableStep table_step(std::uint64_t table_seed,   // RowInit::table_seed
                       std::int64_t step) const {  // from 1 to kMaxStep
    return {RowStep(optimizer, schedule.factor(step), step),
            hash64(table_seed, 0x726F756E64ULL, static_cast<std::uint64_t>(step)),  // "round"
            static_cast<std::uint32_t>(step)};
  }
};

}  // namespace satrap::table
