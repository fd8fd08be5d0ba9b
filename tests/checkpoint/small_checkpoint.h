#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "satrap/checkpoint/checkpoint_format.h"
#include "satrap/checkpoint/checkpoint_writer.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/data/schema.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/job/job_config.h"

namespace satrap::checkpoint {

/// A job with one feature and its table `user`, which has 4 weights and no optimizer state: 32
/// bytes a row. Its data are never read.
inline job::JobConfig small_job() {
  job::JobConfig config;
  config.run_dir = "runs/small";
  config.data.format = data::DataFormat::kCsv;
  config.data.batch_size = 10;
  config.data.train.path = {"train.csv"};
  config.data.schema.label.column = "clicked";
  config.data.schema.features.resize(1);
  config.data.schema.features[0].name = "user";
  config.tables["default"].dim = 4;
  config.tables["default"].optimizer.type = RowOptimizerType::kSgd;
  config.features["default"];
  config.model.type = job::ModelType::kFfnn;
  config.model.top = {2};
  return config;
}

inline std::vector<table::TableSpec> tables_of(const job::JobConfig& config) {
  return job::embedding_specs(config, data::resolve_schema(config.data)).tables;
}

inline constexpr std::size_t kSmallRowBytes = 32;

/// A row of table 0 with equal weights.
struct SmallRow {
  std::uint64_t id = 0;
  float weight = 0;

  Key key() const { return make_key(TableId{0}, id); }
  std::string bytes() const {
    const RowHeader header{key(), 1, 1};
    const float weights[4] = {weight, weight, weight, weight};
    std::string bytes(kSmallRowBytes, '\0');
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + sizeof(header), weights, sizeof(weights));
    return bytes;
  }
};

/// A snapshot of given rows.
class SmallSnapshot : public pipeline::RowsSnapshot {
 public:
  explicit SmallSnapshot(std::vector<SmallRow> rows) : rows_(std::move(rows)) {}

  std::vector<ps::SnapshotFile> write(const std::string& directory) override {
    FileWriter file(directory + "/table-0.bin");
    for (const SmallRow& row : rows_) file.write(row.bytes());
    file.finish();
    return {{.table = 0,
             .name = "table-0.bin",
             .rows = std::ssize(rows_),
             .row_bytes = kSmallRowBytes,
             .bytes = file.bytes_written(),
             .xxh3 = to_hex(file.checksum())}};
  }

 private:
  const std::vector<SmallRow> rows_;
};

/// Contents of a checkpoint of the small job after `step`.
inline std::unique_ptr<CheckpointContent> small_content(std::int64_t step,
                                                        std::vector<SmallRow> rows = {{7, 0.5F},
                                                                                      {8, 1.5F}}) {
  auto content = std::make_unique<CheckpointContent>();
  content->step = step;
  content->examples = 10 * step;
  content->positions = {{.epoch = 0, .batches = step, .next_row = 10 * step}};
  content->metrics = {{"train.loss", 0.25}};
  content->transforms_json = "{}";
  content->config_yaml = dump_config(small_job());
  content->tables = tables_of(small_job());
  content->rows = std::make_unique<SmallSnapshot>(std::move(rows));
  content->dense.push_back({"top.weight", {2, 2}, {1, 2, 3, 4}});
  content->dense.push_back({"top.bias", {2}, {5, 6}});
  return content;
}

/// Publishes `content` in `directory`; returns its path.
inline std::string publish(const std::string& directory,
                           std::unique_ptr<CheckpointContent> content) {
  const std::string path = directory + "/" + checkpoint_name(content->step);
  CheckpointWriter writer(directory, 100);
  writer.start(std::move(content));
  writer.wait();
  return path;
}

/// Replaces a file of a checkpoint, and its entry in the manifest.
inline void rewrite(const std::string& checkpoint,
                    const std::string& name,
                    const std::string& text) {
  write_file_atomic(checkpoint + "/" + name, text);
  Manifest manifest = Manifest::read(checkpoint);
  manifest.files[name] = {std::ssize(text), to_hex(hash_bytes(text))};
  for (Manifest::Table& table : manifest.tables) {
    if (table.files == std::vector{name}) table.rows = std::ssize(text) / table.row_bytes;
  }
  write_file_atomic(checkpoint + "/" + kManifestFile, manifest.to_json());
}

template <class Edit>
void edit_manifest(const std::string& checkpoint, Edit&& edit) {
  Manifest manifest = Manifest::read(checkpoint);
  edit(manifest);
  write_file_atomic(checkpoint + "/" + kManifestFile, manifest.to_json());
}

/// Inverts one bit of a file; a second call restores it.
inline void flip_a_bit(const std::string& path) {
  std::string content = read_file(path);
  content.at(content.size() / 2) = static_cast<char>(content.at(content.size() / 2) ^ 4);
  write_file_atomic(path, content);
}

/// The message of the Error with this code that `body` throws; "" if it throws none.
template <class Body>
std::string error_of(ErrorCode code, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code() == code ? error.what() : concat("another code: ", error.what());
  }
  return "";
}

}  // namespace satrap::checkpoint
