#include "satrap/table/table_row_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/table/whole_rows.h"

namespace satrap::table {

TableRowStore::TableRowStore(std::vector<Table*> tables, ThreadPool& pool)
    : tables_(std::move(tables)), pool_(pool) {
  for (const Table* table : tables_) {
    SATRAP_CHECK(!table->spec().limits.any(), "table '", table->spec().name,
                 "' has limits, and its rows are to be cached");
  }
}

/// A unit has at least kKeysPerUnit keys, or is the last of its table.
void TableRowStore::divide(std::span<const Key> keys) {
  constexpr std::size_t kKeysPerUnit = 128;  // 20 us or more
  units_.clear();
  for (std::size_t begin = 0; begin < keys.size();) {
    const TableId table = table_of(keys[begin]);
    SATRAP_CHECK(static_cast<std::size_t>(table) < tables_.size(), "key of table ",
                 static_cast<int>(table), " of ", tables_.size());
    std::size_t end = begin + 1;
    while (end < keys.size() && table_of(keys[end]) == table &&
           (end - begin < kKeysPerUnit || partition_of(keys[end]) == partition_of(keys[end - 1]))) {
      ++end;
    }
    units_.push_back({tables_[static_cast<std::size_t>(table)], begin, end});
    begin = end;
  }
}

void TableRowStore::fetch(std::span<const Key> keys, std::span<std::byte* const> rows) {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  const std::lock_guard lock(mutex_);
  divide(keys);
  pool_.parallel_for(std::ssize(units_), [&](std::int64_t number) {
    const auto [table, begin, end] = units_[static_cast<std::size_t>(number)];
    fetch_rows(*table, 1, keys.subspan(begin, end - begin),
               [&, first = begin](std::size_t i) { return rows[first + i]; });
  });
}

void TableRowStore::put(std::int64_t step,
                        std::span<const Key> keys,
                        std::span<const std::byte* const> rows) {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  SATRAP_CHECK(step >= 1 && step <= kMaxStep, "put of step ", step);
  const std::lock_guard lock(mutex_);
  divide(keys);
  const auto for_each_unit = [&](const auto& visit) {
    pool_.parallel_for(std::ssize(units_), [&](std::int64_t number) {
      visit(units_[static_cast<std::size_t>(number)]);
    });
  };
  for_each_unit([&](const Unit& unit) {  // before any row is replaced
    for (std::size_t u = unit.begin; u < unit.end; ++u) {
      RowHeader header;
      std::memcpy(&header, rows[u], sizeof(header));
      SATRAP_CHECK(header.key == keys[u], "put: the row of id ", id_of(keys[u]),
                   " has the header of id ", id_of(header.key));
    }
  });
  for_each_unit([&](const Unit& unit) {
    const auto [table, begin, end] = unit;
    put_rows(*table, 1, step, keys.subspan(begin, end - begin),
             [&, first = begin](std::size_t i) { return rows[first + i]; });
  });
}

}  // namespace satrap::table
