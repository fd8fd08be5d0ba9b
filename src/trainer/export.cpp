#include "satrap/trainer/export.h"

#include <cctype>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "export_description.h"
#include "loaded_model.h"
#include "npy_writer.h"
#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/ids.h"
#include "satrap/table/row.h"

namespace satrap::trainer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kDescriptionFile = "export.json";
constexpr int kFormat = 1;

/// The output folder, under a temporary name until it is complete.
class ExportDirectory {
 public:
  ExportDirectory(const std::string& out, bool overwrite) {
    fs::path path = fs::weakly_canonical(fs::absolute(out));  // a link stays one
    if (!path.has_filename()) path = path.parent_path();
    path_ = path.string();
    require_free(overwrite);
    ensure_directory(path.parent_path().string());
    temporary_ = (path.parent_path() / (".tmp-" + path.filename().string())).string();
    remove_all(temporary_);
    ensure_directory(temporary_);
  }
  ~ExportDirectory() {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  }
  ExportDirectory(const ExportDirectory&) = delete;
  ExportDirectory& operator=(const ExportDirectory&) = delete;

  std::string path(const std::string& name) const { return temporary_ + "/" + name; }

  /// Lists a file that has been written.
  void add(const std::string& name, FileWriter& file) {
    file.finish();
    files_[name] = {{"bytes", file.bytes_written()}, {"xxh3", to_hex(file.checksum())}};
    bytes_ += file.bytes_written();
  }

  const Json& files() const { return files_; }
  std::int64_t bytes() const { return bytes_; }

  void publish() {
    fsync_directory(temporary_);
    replace_directory(temporary_, path_);
    temporary_.clear();
  }

 private:
  void require_free(bool overwrite) const {
    if (!fs::exists(path_)) return;
    if (!fs::is_directory(path_)) {
      throw Error(ErrorCode::kInvalidConfig, concat("--out: '", path_, "' is not a folder"));
    }
    if (list_directory(path_).empty()) return;
    if (!fs::exists(path_ + "/" + kDescriptionFile)) {
      throw Error(ErrorCode::kInvalidConfig, concat("--out: '", path_,
                                                    "' holds files that are not an export; name "
                                                    "another folder"));
    }
    if (!overwrite) {
      throw Error(ErrorCode::kInvalidConfig, concat("--out: '", path_,
                                                    "' holds an earlier export: replace it with "
                                                    "--overwrite, or name another folder"));
    }
  }

  std::string path_, temporary_;
  Json files_ = Json::object();
  std::int64_t bytes_ = 0;
};

/// A table's name as the name of a file.
std::string file_name(const std::string& table) {
  std::string name;
  for (const char c : table) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    name += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return name;
}

/// Calls visit(row, header) for every row of a table; ids without a row are skipped.
template <class Visit>
void for_each_row(const LoadedModel& loaded,
                  const checkpoint::Manifest::Table& table,
                  Visit&& visit) {
  const auto take = [&](std::span<const std::byte> rows) {
    for (; !rows.empty(); rows = rows.subspan(static_cast<std::size_t>(table.row_bytes))) {
      RowHeader header;
      std::memcpy(&header, rows.data(), sizeof(header));
      if ((header.count & table::kCandidateFlag) == 0) visit(rows.data(), header);
    }
  };
  for (const std::string& file : table.files) {
    checkpoint::read_rows(loaded.path, file, loaded.manifest, table.row_bytes, take);
  }
}

std::int64_t count_rows(const LoadedModel& loaded,
                        const checkpoint::Manifest::Table& table,
                        const table::TableSpec& spec) {
  if (spec.limits.admit_after == 1) return table.rows;
  std::int64_t count = 0;
  for_each_row(loaded, table, [&](const std::byte*, const RowHeader&) { ++count; });
  return count;
}

/// Writes the rows of a table as two arrays, and their names to its description. Returns their
/// number.
std::int64_t write_rows(const LoadedModel& loaded,
                        const checkpoint::Manifest::Table& table,
                        const table::TableSpec& spec,
                        ExportDirectory& out,
                        Json& description) {
  const RowLayout layout = spec.layout();
  const std::int64_t num_rows = count_rows(loaded, table, spec);
  const std::string keys_name = file_name(table.name) + ".keys.npy";
  const std::string weights_name = file_name(table.name) + ".weights.npy";
  NpyWriter keys(out.path(keys_name), "<u8", {num_rows});
  NpyWriter weights(out.path(weights_name), "<f4", {num_rows, table.dim});
  std::vector<float> values(static_cast<std::size_t>(table.dim));
  for_each_row(loaded, table, [&](const std::byte* row, const RowHeader& header) {
    const std::uint64_t id = id_of(header.key);
    keys.write(std::as_bytes(std::span(&id, 1)));
    layout.read_weights(row, values.data());
    weights.write(std::as_bytes(std::span(values)));
  });
  out.add(keys_name, keys.file());
  out.add(weights_name, weights.file());
  description["rows"] = num_rows;
  description["keys"] = keys_name;
  description["weights"] = weights_name;
  return num_rows;
}

void write_text(const std::string& name, const std::string& text, ExportDirectory& out) {
  FileWriter file(out.path(name));
  file.write(text);
  out.add(name, file);
}

}  // namespace

Exported export_model(const job::JobConfig& config,
                      const checkpoint::UsedCheckpoint& checkpoint,
                      const std::string& out_path,
                      bool overwrite) {
  ExportDirectory out(out_path, overwrite);
  LoadedModel loaded(config, checkpoint, LoadedModel::Rows::kNone);
  Exported result{.checkpoint = loaded.path, .step = loaded.manifest.step};
  Json json = {{"format", kFormat},
               {"version", SATRAP_VERSION},
               {"checkpoint", loaded.path},
               {"step", loaded.manifest.step},
               {"examples", loaded.manifest.examples}};
  json.update(describe_model(loaded));
  write_text("dense.pt", loaded.model.network->to_torchscript(), out);
  for (std::size_t i = 0; i < loaded.manifest.tables.size(); ++i) {
    result.rows += write_rows(loaded, loaded.manifest.tables[i], loaded.model.specs.tables[i], out,
                              json["tables"][i]);
  }
  json["files"] = out.files();
  write_text(kDescriptionFile, json.dump(2) + "\n", out);
  out.publish();
  result.bytes = out.bytes();
  return result;
}

}  // namespace satrap::trainer
