#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "satrap/table/table.h"

namespace satrap::table {

/// The rows of a table as they are at the moment of construction, written while training
/// continues. Rows that no step has updated are omitted: they are a function of the seed.
///
/// Construct it between two steps (no update running), which takes microseconds; then call write()
/// from any one thread while lookups, inserts and updates continue. An update of a row that has not
/// been written copies the old row aside first; write() frees these copies as it passes, the
/// destructor the rest. At most one snapshot per table at a time; the table outlives it.
class TableSnapshot {
 public:
  /// `step`: the last step whose updates are in the table.
  TableSnapshot(Table& table, std::int64_t step);
  ~TableSnapshot();
  TableSnapshot(const TableSnapshot&) = delete;
  TableSnapshot& operator=(const TableSnapshot&) = delete;

  /// Rows at construction: an upper bound on the rows that write() gives.
  std::int64_t max_rows() const { return max_rows_; }

  /// Passes all rows to `sink`, in blocks of some rows of table.row_bytes() each: the header (key,
  /// last_step, count), weights and state as they are in memory; then ids that have no row yet, as
  /// rows of zeros (kCandidateFlag). The order of rows is not defined.
  /// No lock is held during the call; it may block and throw. To be called once.
  /// Returns the number of rows.
  std::int64_t write(const std::function<void(std::span<const std::byte> rows)>& sink);

 private:
  using Sink = std::function<void(std::span<const std::byte> rows)>;
  std::int64_t write_candidates(const Sink& sink);

  Table& table_;
  const std::int64_t step_;
  std::int64_t max_rows_ = 0;
  std::unique_ptr<TableSnapshot> candidates_;
};

}  // namespace satrap::table
