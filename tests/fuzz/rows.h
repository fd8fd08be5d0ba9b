#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "satrap/data/row_block.h"
#include "satrap/data/schema.h"
#include "src/data/text/text_rows.h"
#include "tests/fuzz/file.h"

namespace satrap::fuzz {

/// What was read of a file: all bytes of its rows, one column after the other, and the bad rows.
struct ReadRows {
  std::vector<std::string> columns;
  std::vector<std::string> bad;
  std::int64_t num_rows = 0, num_bad = 0;
  bool refused = false;
  friend bool operator==(const ReadRows&, const ReadRows&) = default;
};

template <class T>
void append_bytes(const std::vector<T>& values, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

inline void append(const data::RowBlock& block, ReadRows& read) {
  std::size_t at = 0;
  const auto column = [&]() -> std::string& {
    if (at == read.columns.size()) read.columns.emplace_back();
    return read.columns[at++];
  };
  read.num_rows += block.num_rows;
  append_bytes(block.labels, column());
  for (const std::vector<double>& numbers : block.numeric) append_bytes(numbers, column());
  for (const data::RowBlock::Bags& bags : block.bags) {
    if (std::ssize(bags.offsets) != block.num_rows + 1) fail("a bag without a row");
    if (bags.offsets.back() != std::ssize(bags.ids)) fail("ids beyond the bags");
    std::string& lengths = column();
    for (std::size_t r = 1; r < bags.offsets.size(); ++r) {
      lengths += std::to_string(bags.offsets[r] - bags.offsets[r - 1]) + " ";
    }
    append_bytes(bags.ids, column());
    append_bytes(bags.weights, column());
  }
}

/// Reads `path` by the classes of satrap, in blocks of at least `block_bytes`.
inline ReadRows read_rows(const data::Schema& schema,
                          const std::string& path,
                          std::int64_t block_bytes,
                          data::FileFormat format) {
  ReadRows read;
  const auto policy = std::make_shared<data::BadRowPolicy>(
      false, data::BadRowLimit(), [&](const std::string& line) { read.bad.push_back(line); });
  read.refused = is_refused([&] {
    data::TextRows rows(schema, {.files = {data::DataFile{.path = path}}}, {}, policy,
                        {.block_bytes = block_bytes, .line_bytes = 1 << 16}, nullptr, format);
    for (data::RowBlock block; rows.next(block);) append(block, read);
  });
  read.num_bad = policy->count();
  return read;
}

/// Reads a file with this content in one block and in many: where it is cut must not matter.
inline void read_as_one_and_as_many(const data::Schema& schema,
                                    std::string_view content,
                                    data::FileFormat format = data::FileFormat::kDelimited) {
  static const MemoryFile file;
  file.set(content);
  const ReadRows one = read_rows(schema, file.path(), 1 << 13, format);
  const ReadRows many = read_rows(schema, file.path(), 64, format);
  if (one.refused != many.refused) fail("refused in one block or in many, not in both");
  if (!one.refused && one != many) fail("other rows in one block than in many");
}

}  // namespace satrap::fuzz
