#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "satrap/table/row_store.h"
#include "satrap/table/table.h"
#include "satrap/table/whole_rows.h"

namespace satrap::table {

/// Tables of this process as a RowStore. Nothing else may create or change their rows meanwhile.
class TableRowStore final : public RowStore {
 public:
  /// `tables[i]` has TableId i, and no limits: a row held by a cache looks unused to its table.
  /// All outlive it.
  explicit TableRowStore(std::vector<Table*> tables);

  void fetch(std::span<const Key> keys, std::span<std::byte* const> rows) override;
  void put(std::int64_t step,
           std::span<const Key> keys,
           std::span<const std::byte* const> rows) override;

 private:
  /// Calls visit(table, first, keys) for the keys of each table.
  template <class Visit>
  void for_each_table(std::span<const Key> keys, Visit&& visit);

  const std::vector<Table*> tables_;
  std::mutex mutex_;  // one call at a time
  WholeRows whole_rows_;
};

}  // namespace satrap::table
