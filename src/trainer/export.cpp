#include "satrap/trainer/export.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/hash.h"
#include "satrap/core/ids.h"
#include "satrap/table/row.h"
#include "src/trainer/export_description.h"
#include "src/trainer/loaded_model.h"
#include "src/trainer/npy_writer.h"
#include "src/trainer/safetensors_writer.h"

namespace satrap::trainer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kDescriptionFile = "export.json";
constexpr int kFormat = 4;           // with `prediction` of labels
constexpr int kFormatOfSigmoid = 3;  // the same without: predictions are sigmoids

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

/// A table's name as the name of a file; of a long one the beginning and a hash.
std::string file_name(const std::string& table) {
  constexpr std::size_t kMost = 160;  // bytes: with endings at most 255, what file systems take
  std::string name;
  for (const char c : table) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    name += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  if (name.size() <= kMost) return name;
  const std::size_t percent = name.rfind('%', kMost - 1);  // two digits belong to it
  const bool cuts_digits = percent != std::string::npos && percent + 3 > kMost;
  return fmt::format("{}-{:016x}", name.substr(0, cuts_digits ? percent : kMost),
                     hash_bytes(table));
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

/// The id of a row as a file has it.
void write_id(const RowHeader& header, FileWriter& file) {
  const std::uint64_t id = id_of(header.key);
  file.write(std::as_bytes(std::span(&id, 1)));
}

/// Writes the weights of rows, converted to fp32.
class WeightsWriter {
 public:
  explicit WeightsWriter(const table::TableSpec& spec)
      : layout_(spec.layout()), values_(static_cast<std::size_t>(spec.dim)) {}

  void write(const std::byte* row, FileWriter& file) {
    layout_.read_weights(row, values_.data());
    file.write(std::as_bytes(std::span(values_)));
  }

 private:
  const RowLayout layout_;
  std::vector<float> values_;
};

/// One table that is being written: where from, how many rows, and the beginning of its files'
/// names.
struct ExportedTable {
  const LoadedModel& loaded;
  const checkpoint::Manifest::Table& table;
  const table::TableSpec& spec;
  std::int64_t num_rows = 0;
  std::string name;
};

/// Names its files in the description: two arrays, in one pass over the rows.
void write_npy(const ExportedTable& source, ExportDirectory& out, Json& description) {
  const std::string keys_name = source.name + ".keys.npy";
  const std::string weights_name = source.name + ".weights.npy";
  NpyWriter keys(out.path(keys_name), "<u8", {source.num_rows});
  NpyWriter weights(out.path(weights_name), "<f4", {source.num_rows, source.spec.dim});
  WeightsWriter converted(source.spec);
  for_each_row(source.loaded, source.table, [&](const std::byte* row, const RowHeader& header) {
    write_id(header, keys.file());
    converted.write(row, weights.file());
  });
  out.add(keys_name, keys.file());
  out.add(weights_name, weights.file());
  description["keys"] = keys_name;
  description["weights"] = weights_name;
}

/// Names its file in the description: two tensors, one after the other, in two passes.
void write_safetensors(const ExportedTable& source, ExportDirectory& out, Json& description) {
  const std::string name = source.name + ".safetensors";
  SafetensorsWriter tensors(out.path(name), {{.name = "keys",
                                              .dtype = "U64",
                                              .value_bytes = sizeof(std::uint64_t),
                                              .shape = {source.num_rows}},
                                             {.name = "weights",
                                              .dtype = "F32",
                                              .value_bytes = sizeof(float),
                                              .shape = {source.num_rows, source.spec.dim}}});
  for_each_row(source.loaded, source.table, [&](const std::byte*, const RowHeader& header) {
    write_id(header, tensors.file());
  });
  WeightsWriter converted(source.spec);
  for_each_row(source.loaded, source.table, [&](const std::byte* row, const RowHeader&) {
    converted.write(row, tensors.file());
  });
  out.add(name, tensors.file());
  description["keys"] = name;
  description["weights"] = name;
}

/// Writes the rows of a table, and their number and files to its description.
std::int64_t write_rows(const LoadedModel& loaded,
                        std::size_t index,
                        RowsFormat format,
                        ExportDirectory& out,
                        Json& description) {
  const checkpoint::Manifest::Table& table = loaded.manifest.tables[index];
  const table::TableSpec& spec = loaded.model.specs.tables[index];
  const ExportedTable source{.loaded = loaded,
                             .table = table,
                             .spec = spec,
                             .num_rows = count_rows(loaded, table, spec),
                             .name = file_name(table.name)};
  description["rows"] = source.num_rows;
  if (format == RowsFormat::kNpy) {
    write_npy(source, out, description);
  } else {
    write_safetensors(source, out, description);
  }
  return source.num_rows;
}

void write_text(const std::string& name, const std::string& text, ExportDirectory& out) {
  FileWriter file(out.path(name));
  file.write(text);
  out.add(name, file);
}

NetworkFormat format_of_network(job::ModelType type, std::optional<NetworkFormat> wanted) {
  if (wanted) return *wanted;
  return type == job::ModelType::kTorchScript ? NetworkFormat::kTorchScript
         : type == job::ModelType::kPython    ? NetworkFormat::kPt2
                                              : NetworkFormat::kOnnx;
}

std::string text_of(dense::DenseNetwork& network, NetworkFormat format) {
  switch (format) {
    case NetworkFormat::kOnnx:
      return network.to_onnx();
    case NetworkFormat::kTorchScript:
      return network.to_torchscript();
    case NetworkFormat::kPt2:
      return network.to_pt2();
  }
  return "";  // not reached
}

}  // namespace

Exported export_model(const job::JobConfig& config,
                      const checkpoint::UsedCheckpoint& checkpoint,
                      const std::string& out_path,
                      const ExportOptions& options) {
  ExportDirectory out(out_path, options.overwrite);
  LoadedModel loaded(config, checkpoint, options.make_network, LoadedModel::Rows::kNone);
  Exported result{.checkpoint = checkpoint.name(), .step = loaded.manifest.step};
  Json json = {{"format", predicts_otherwise(loaded) ? kFormat : kFormatOfSigmoid},
               {"version", SATRAP_VERSION},
               {"checkpoint", checkpoint.name()},
               {"step", loaded.manifest.step},
               {"examples", loaded.manifest.examples}};
  const NetworkFormat network = format_of_network(config.model.type, options.network);
  json.update(describe_model(loaded, network));
  write_text(network_file(network), text_of(*loaded.model.network, network), out);
  if (config.model.type == job::ModelType::kPython) {
    write_text("dense.safetensors", loaded.model.network->to_safetensors(), out);
  }
  for (std::size_t i = 0; i < loaded.manifest.tables.size(); ++i) {
    result.rows += write_rows(loaded, i, options.rows, out, json["tables"][i]);
  }
  json["files"] = out.files();
  write_text(kDescriptionFile, json.dump(2) + "\n", out);
  out.publish();
  result.bytes = out.bytes();
  return result;
}

}  // namespace satrap::trainer
