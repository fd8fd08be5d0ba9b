#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/table/row.h"
#include "satrap/table/sharding.h"
#include "src/checkpoint/checkpoint_directory.h"

namespace satrap::checkpoint {
namespace {

namespace fs = std::filesystem;

/// One table as files of `num_shards` shards.
class TableDivider {
 public:
  TableDivider(DirectoryWriter& out, std::size_t table, std::int64_t num_shards, bool is_packed)
      : out_(out), table_(out.manifest.tables[table]), from_row_bytes_(table_.row_bytes) {
    table_.files.clear();
    if (is_packed) {
      layout_ = table_.layout();
      table_.row_bytes = layout_->row_bytes;
      unpacked_.resize(static_cast<std::size_t>(layout_->row_bytes));
    }
    for (std::int64_t s = 0; s < num_shards; ++s) {
      table_.files.push_back(num_shards == 1 ? fmt::format("table-{}.bin", table)
                                             : fmt::format("table-{}.shard-{}.bin", table, s));
      writers_.emplace_back(out.directory() + "/" + table_.files.back());
    }
  }

  void add(std::span<const std::byte> rows) {
    const auto row_bytes = static_cast<std::size_t>(from_row_bytes_);
    for (; rows.size() >= row_bytes; rows = rows.subspan(row_bytes), ++num_rows_) {
      RowHeader header;
      std::memcpy(&header, rows.data(), sizeof(header));
      const std::int64_t shard = table::shard_of(header.key, std::ssize(writers_));
      std::span<const std::byte> row = rows.first(row_bytes);
      if (layout_) {
        layout_->unpack(row.data(), unpacked_.data());
        row = unpacked_;
      }
      writers_[static_cast<std::size_t>(shard)].write(row);
    }
    if (!rows.empty()) {
      throw Error(ErrorCode::kCorrupt, concat("table '", table_.name, "': a file of rows of ",
                                              row_bytes, " bytes ends within a row"));
    }
  }

  void finish() {
    if (num_rows_ != table_.rows) {
      throw Error(ErrorCode::kCorrupt, concat("table '", table_.name, "': ", num_rows_,
                                              " rows, the manifest says ", table_.rows));
    }
    for (std::size_t s = 0; s < writers_.size(); ++s) out_.finish(table_.files[s], writers_[s]);
  }

 private:
  DirectoryWriter& out_;
  Manifest::Table& table_;
  const std::int64_t from_row_bytes_;
  std::optional<RowLayout> layout_;  // if rows are packed, as in format 2
  std::vector<std::byte> unpacked_;  // a row
  std::deque<FileWriter> writers_;   // of each shard
  std::int64_t num_rows_ = 0;
};

void write_resharded(const std::string& path, std::int64_t num_shards, DirectoryWriter& out) {
  const Manifest from = Manifest::read(path);
  out.manifest = from;
  out.manifest.files.clear();
  out.manifest.folder.clear();
  out.manifest.has_packed_rows = false;
  std::set<std::string> row_files;
  for (std::size_t t = 0; t < from.tables.size(); ++t) {
    const Manifest::Table& table = from.tables[t];
    TableDivider divider(out, t, num_shards, from.has_packed_rows);
    for (const std::string& name : table.files) {
      row_files.insert(name);
      read_rows(path, name, from, table.row_bytes,
                [&](std::span<const std::byte> rows) { divider.add(rows); });
    }
    divider.finish();
    log_info("table '{}': {} rows", table.name, table.rows);
  }
  for (const auto& [name, unused] : from.files) {
    if (row_files.contains(name)) continue;
    out.file(name, [&, &file = name](FileWriter& copy) {
      read_checked(path, file, from, [&](std::span<const std::byte> bytes) { copy.write(bytes); });
    });
  }
  out.finish();
}

}  // namespace

std::string reshard_checkpoint(const std::string& path,
                               std::int64_t num_shards,
                               const std::string& out) {
  if (num_shards < 1 || num_shards > kMaxFilesPerTable) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("--shards must be from 1 to ", kMaxFilesPerTable, ", got ", num_shards));
  }
  fs::path from = fs::absolute(path).lexically_normal();
  if (!from.has_filename()) from = from.parent_path();
  const std::string name = from.filename().string();
  const std::string directory = out.empty() ? from.parent_path().string() : out;
  const std::string target = directory + "/" + name;
  if (!out.empty() && fs::exists(target)) {
    throw Error(ErrorCode::kInvalidConfig, concat("--out: ", target, " already exists"));
  }
  ensure_directory(directory);
  const std::string temporary = temporary_path(directory, name);
  remove_all(temporary);  // of an attempt that was killed
  ensure_directory(temporary);
  try {
    DirectoryWriter writer(temporary);
    write_resharded(from.string(), num_shards, writer);
    replace_directory(temporary, target);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw;
  }
  fsync_directory(directory);
  return target;
}

}  // namespace satrap::checkpoint
