#pragma once

#include <memory>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/embedding/row_access.h"
#include "satrap/job/feature_spec.h"
#include "satrap/table/table.h"

namespace satrap::embedding {

/// Rows of tables in this process. Kernels process them in place: planning finds their addresses
/// and creates missing ones, a wait returns at once, updates run the optimizer.
///
/// Only one pool(), update() or skip() runs at a time, over all batches. Batches may be planned or
/// read meanwhile. With limits, a plan is valid until RowLimits::pinned_steps steps later, and
/// read() reads the rows as of the last update or skip, however many plans have been made since.
class TableRows final : public RowAccess {
 public:
  /// `tables[i]` has TableId i. All outlive it.
  TableRows(const std::vector<job::FeatureSpec>& features,
            std::vector<table::Table*> tables,
            ThreadPool& pool);
  ~TableRows() override;

  const FeatureLayout& layout() const override;
  ThreadPool& pool() const override;
  std::unique_ptr<BatchRows> make_rows() override;
  void stop() override {}  // nothing waits

 private:
  class Updates;
  class Rows;
  const std::unique_ptr<Updates> updates_;
};

}  // namespace satrap::embedding
