#pragma once

#include <cstdint>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/core/thread_pool.h"
#include "satrap/table/row_store.h"
#include "satrap/table/table.h"

namespace satrap::table {

/// Tables of this process as a RowStore. Nothing else may create or change their rows meanwhile.
/// One call at a time; the threads of the pool share its keys, each with partitions of its own.
class TableRowStore final : public RowStore {
 public:
  /// `tables[i]` has TableId i, and no limits: a row held by a cache looks unused to its table.
  /// All outlive it.
  TableRowStore(std::vector<Table*> tables, ThreadPool& pool);

  void fetch(std::span<const Key> keys, std::span<std::byte* const> rows) override;
  void locate(std::span<const Key> keys, std::span<std::byte*> rows) override;
  void put(std::int64_t step,
           std::span<const Key> keys,
           std::span<const std::byte* const> rows) override;

 private:
  /// The unit of work: consecutive keys of one table, all that are in the same partitions.
  struct Unit {
    Table* table;
    std::size_t begin, end;
  };

  void divide(std::span<const Key> keys) SATRAP_REQUIRES(mutex_);
  template <class Visit>
  void for_each_unit(Visit&& visit) SATRAP_REQUIRES(mutex_);

  const std::vector<Table*> tables_;
  ThreadPool& pool_;
  Mutex mutex_;
  std::vector<Unit> units_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace satrap::table
