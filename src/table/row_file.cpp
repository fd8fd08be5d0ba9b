#include "satrap/table/row_file.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/hash.h"

namespace satrap::table {
namespace {

constexpr std::int64_t kFileBlockBytes = 1 << 20;

using Bytes = std::span<const std::byte>;

/// Size of header and weights, the same in packed rows.
std::int64_t bytes_with_weights(const RowLayout& layout) {
  return RowLayout::kWeightsOffset + layout.dim * bytes_of(layout.weight_type);
}

void check_layout(const RowFile& file, const Table& table) {
  const RowLayout& layout = table.layout();
  const std::int64_t row_bytes = file.is_packed ? layout.packed_bytes() : layout.row_bytes;
  const bool fits = file.weights_only ? file.row_bytes >= bytes_with_weights(layout)
                                      : file.row_bytes == row_bytes;
  if (fits && file.bytes % file.row_bytes == 0) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat(file.path, ": ", file.bytes, " bytes in rows of ", file.row_bytes, ", table '",
                     table.spec().name, "' has rows of ", row_bytes));
}

/// Whether the ranges of the mixed id of the two parts overlap.
bool may_hold_rows_of(const RowFile& file, const RowsToLoad& what) {
  return file.part * what.num_shards < (what.shard + 1) * file.num_parts &&
         what.shard * file.num_parts < (file.part + 1) * what.num_shards;
}

/// Converts rows of a file to rows of the table, one at a time.
class RowAdapter {
 public:
  RowAdapter(const RowFile& file, const Table& table, const RowsToLoad& what)
      : file_(file),
        what_(what),
        spec_(table.spec()),
        layout_(table.layout()),
        last_step_(static_cast<std::uint32_t>(std::max<std::int64_t>(1, what.last_step))) {}

  /// Appends the row to `rows` if it belongs to the shard.
  void add(Bytes row, std::vector<std::byte>& rows) const {
    RowHeader header;
    std::memcpy(&header, row.data(), sizeof(header));
    if (shard_of(header.key, file_.num_parts) != file_.part) {
      throw Error(ErrorCode::kCorrupt,
                  concat(file_.path, ": id ", id_of(header.key), " is not of part ", file_.part,
                         " of ", file_.num_parts, ", as the file's name says"));
    }
    if (shard_of(header.key, what_.num_shards) != what_.shard) return;
    header.last_step = std::min(header.last_step, last_step_);
    const std::size_t at = rows.size();
    rows.resize(at + static_cast<std::size_t>(layout_.row_bytes));
    std::byte* out = rows.data() + at;
    if (file_.weights_only) {
      std::memcpy(out, row.data(), static_cast<std::size_t>(bytes_with_weights(layout_)));
      begin_state(out);
    } else if (file_.is_packed) {
      layout_.unpack(row.data(), out);
    } else {
      std::memcpy(out, row.data(), row.size());
    }
    std::memcpy(out, &header, sizeof(header));
  }

 private:
  void begin_state(std::byte* row) const {
    std::vector<float> weights(static_cast<std::size_t>(spec_.dim));
    layout_.read_weights(row, weights.data());
    spec_.optimizer.initialize_state(weights.data(), layout_.state_of(row), spec_.dim);
  }

  const RowFile& file_;
  const RowsToLoad& what_;
  const TableSpec& spec_;
  const RowLayout& layout_;
  const std::uint32_t last_step_;
};

}  // namespace

void load_rows(const RowFile& file, Table& table, const RowsToLoad& what) {
  check_layout(file, table);
  if (!may_hold_rows_of(file, what)) return;
  if (!std::filesystem::exists(file.path))
    throw Error(ErrorCode::kCorrupt, file.path + ": missing");
  FileReader reader(file.path);
  if (reader.size() != file.bytes) {
    throw Error(ErrorCode::kCorrupt,
                concat(file.path, ": ", reader.size(), " bytes, the manifest says ", file.bytes));
  }
  const RowAdapter adapter(file, table, what);
  const auto row_bytes = static_cast<std::size_t>(file.row_bytes);
  std::vector<std::byte> block(
      static_cast<std::size_t>(std::max<std::int64_t>(1, kFileBlockBytes / file.row_bytes)) *
      row_bytes);
  std::vector<std::byte> rows;
  while (!reader.at_end()) {
    if (what.is_abandoned != nullptr && *what.is_abandoned) {
      throw Error(ErrorCode::kUnavailable, "this start of the job has been replaced");
    }
    const auto size =
        static_cast<std::size_t>(std::min(std::ssize(block), reader.size() - reader.bytes_read()));
    reader.read(std::span(block).first(size));
    rows.clear();
    for (std::size_t at = 0; at < size; at += row_bytes) {
      adapter.add(Bytes(block).subspan(at, row_bytes), rows);
    }
    table.restore(rows);
  }
  if (to_hex(reader.checksum()) != file.xxh3) {
    throw Error(ErrorCode::kCorrupt, concat(file.path, ": checksum does not match its content"));
  }
}

}  // namespace satrap::table
