#include "satrap/table/table_row_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/table/whole_rows.h"

namespace satrap::table {
namespace {

/// A block may be refused meanwhile: the rows in it are copied then.
void locate_rows(Table& table, std::span<const Key> keys, std::span<std::byte*> rows) {
  if (!table.is_registered())
    return fetch_rows(table, 1, keys, [&](std::size_t i) { return rows[i]; });
  std::array<RowPointer, kRowsPerBlock> found;
  for (std::size_t begin = 0; begin < keys.size(); begin += kRowsPerBlock) {
    const std::size_t size = std::min(kRowsPerBlock, keys.size() - begin);
    table.find_or_insert(keys.subspan(begin, size), std::span(found).first(size));
    const bool is_registered = table.is_registered();  // with the rows that were just added
    for (std::size_t i = 0; i < size; ++i) {
      if (is_registered) {
        rows[begin + i] = found[i];
      } else {
        std::memcpy(rows[begin + i], found[i], static_cast<std::size_t>(table.row_bytes()));
      }
    }
  }
}

}  // namespace

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

template <class Visit>
void TableRowStore::for_each_unit(Visit&& visit) {
  const std::span<const Unit> units = units_;  // the pool's threads work under this one's mutex
  pool_.parallel_for(std::ssize(units),
                     [&](std::int64_t number) { visit(units[static_cast<std::size_t>(number)]); });
}

void TableRowStore::fetch(std::span<const Key> keys, std::span<std::byte* const> rows) {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  const MutexLock lock(mutex_);
  divide(keys);
  for_each_unit([&](const Unit& unit) {
    fetch_rows(*unit.table, 1, keys.subspan(unit.begin, unit.end - unit.begin),
               [&](std::size_t i) { return rows[unit.begin + i]; });
  });
}

void TableRowStore::locate(std::span<const Key> keys, std::span<std::byte*> rows) {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  const MutexLock lock(mutex_);
  divide(keys);
  for_each_unit([&](const Unit& unit) {
    locate_rows(*unit.table, keys.subspan(unit.begin, unit.end - unit.begin),
                rows.subspan(unit.begin, unit.end - unit.begin));
  });
}

void TableRowStore::put(std::int64_t step,
                        std::span<const Key> keys,
                        std::span<const std::byte* const> rows) {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  SATRAP_CHECK(step >= 1 && step <= kMaxStep, "put of step ", step);
  const MutexLock lock(mutex_);
  divide(keys);
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
