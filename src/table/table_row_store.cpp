#include "satrap/table/table_row_store.h"

#include <cstring>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::table {

TableRowStore::TableRowStore(std::vector<Table*> tables) : tables_(std::move(tables)) {
  for (const Table* table : tables_) {
    SATRAP_CHECK(!table->spec().limits.any(), "table '", table->spec().name,
                 "' has limits, and its rows are to be cached");
  }
}

template <class Visit>
void TableRowStore::for_each_table(std::span<const Key> keys, Visit&& visit) {
  for (std::size_t begin = 0; begin < keys.size();) {
    const TableId table = table_of(keys[begin]);
    std::size_t end = begin + 1;
    while (end < keys.size() && table_of(keys[end]) == table) ++end;
    SATRAP_CHECK(static_cast<std::size_t>(table) < tables_.size(), "key of table ",
                 static_cast<int>(table), " of ", tables_.size());
    visit(*tables_[static_cast<std::size_t>(table)], begin, keys.subspan(begin, end - begin));
    begin = end;
  }
}

void TableRowStore::fetch(std::span<const Key> keys, std::span<std::byte* const> rows) {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  const std::lock_guard lock(mutex_);
  for_each_table(keys, [&](Table& table, std::size_t first, std::span<const Key> of_table) {
    whole_rows_.fetch(table, 1, of_table, [&](std::size_t i) { return rows[first + i]; });
  });
}

void TableRowStore::put(std::int64_t step,
                        std::span<const Key> keys,
                        std::span<const std::byte* const> rows) {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  SATRAP_CHECK(step >= 1 && step <= kMaxStep, "put of step ", step);
  for (std::size_t u = 0; u < keys.size(); ++u) {
    RowHeader header;
    std::memcpy(&header, rows[u], sizeof(header));
    SATRAP_CHECK(header.key == keys[u], "put: the row of id ", id_of(keys[u]),
                 " has the header of id ", id_of(header.key));
  }
  const std::lock_guard lock(mutex_);
  for_each_table(keys, [&](Table& table, std::size_t first, std::span<const Key> of_table) {
    whole_rows_.put(table, 1, step, of_table, [&](std::size_t i) { return rows[first + i]; });
  });
}

}  // namespace satrap::table
