#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "satrap/table/table.h"
#include "tests/ps/shard_request_fixture.h"

namespace satrap::ps {

using Row = Bytes;  // header, weights, state

inline RowHeader header_in(const Row& row) {
  RowHeader header;
  std::memcpy(&header, row.data(), sizeof(header));
  return header;
}

inline std::vector<float> floats_in(const Row& row) {
  std::vector<float> floats((row.size() - sizeof(RowHeader)) / sizeof(float));
  std::memcpy(floats.data(), row.data() + sizeof(RowHeader), floats.size() * sizeof(float));
  return floats;
}

/// A row of `key` that differs from those of every other `version`.
inline Row some_row(const std::vector<table::TableSpec>& tables, Key key, std::uint64_t version) {
  const auto bytes = tables[static_cast<std::size_t>(table_of(key))].layout().row_bytes;
  Row row(static_cast<std::size_t>(bytes));
  const RowHeader header{.key = key, .last_step = 77, .count = 78};
  std::memcpy(row.data(), &header, sizeof(header));
  std::vector<float> floats = floats_in(row);
  const RandomStream random{hash64(version, static_cast<std::uint64_t>(key))};
  for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = random.uniform(i);
  std::memcpy(row.data() + sizeof(header), floats.data(), floats.size() * sizeof(float));
  return row;
}

inline std::vector<Row> some_rows(const std::vector<table::TableSpec>& tables,
                                  const std::vector<Key>& keys,
                                  std::uint64_t version) {
  std::vector<Row> rows;
  for (const Key key : keys) rows.push_back(some_row(tables, key, version));
  return rows;
}

}  // namespace satrap::ps
