#include "checkpoint_writer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <span>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <stdio.h>

#include "checkpoint_format.h"
#include "checkpoint_reader.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "satrap/core/thread_name.h"
#include "satrap/ps/table.h"

namespace satrap::trainer {
namespace {

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

/// Writes the files of one checkpoint, whose directory is there, and notes them in its manifest.
class DirectoryWriter {
 public:
  explicit DirectoryWriter(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }

  template <class Fill>
  void file(const std::string& name, Fill&& fill) {
    FileWriter writer(directory_ + "/" + name);
    fill(writer);
    writer.finish();
    manifest.files[name] = {writer.bytes_written(), to_hex(writer.checksum())};
  }

  /// A file that somebody else has written.
  void adopt(const std::string& name) {
    const std::string path = directory_ + "/" + name;
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
    FileReader reader(path);
    std::vector<std::byte> block(std::size_t{1} << 20);
    for (std::int64_t left = size; left > 0;) {
      const auto count = std::min(left, std::ssize(block));
      reader.read(std::span(block).first(static_cast<std::size_t>(count)));
      left -= count;
    }
    manifest.files[name] = {size, to_hex(reader.checksum())};
  }

  void finish() {
    FileWriter writer(directory_ + "/" + kManifestFile);
    const std::string json = manifest.to_json();
    writer.write(std::as_bytes(std::span(json)));
    writer.finish();
    fsync_directory(directory_);
  }

  Manifest manifest;

 private:
  std::string directory_;
};

std::string temporary_path(const std::string& directory, std::int64_t step) {
  return directory + "/" + kTemporaryPrefix + checkpoint_name(step);
}

void write_tables(CheckpointContent& content, DirectoryWriter& out) {
  for (const ps::TableSpec& spec : content.tables) {
    out.manifest.tables.push_back({.name = spec.name,
                                   .optimizer = name_of(spec.optimizer.type),
                                   .files = {},
                                   .dim = spec.dim,
                                   .row_bytes = ps::Table::bytes_of_row(spec),
                                   .rows = 0});
  }
  for (const ps::SnapshotFile& file : content.rows->write(out.directory())) {
    Manifest::Table& table = out.manifest.tables[static_cast<std::size_t>(file.table)];
    table.files.push_back(file.name);
    table.rows += file.rows;
    out.manifest.files[file.name] = {file.bytes, file.xxh3};
  }
  content.rows.reset();  // no more copying aside
}

void write_dense(const CheckpointContent& content, DirectoryWriter& out) {
  out.file(kDenseFile, [&](FileWriter& file) {
    for (const auto& tensor : content.dense) {
      out.manifest.dense.push_back({tensor.name, tensor.shape});
      file.write(bytes_of(tensor.values));
    }
  });
}

void write_lookups(const std::vector<PendingLookup>& pending, FileWriter& file) {
  for (const PendingLookup& lookup : pending) {
    const std::array<std::int64_t, 4> header = {lookup.step, lookup.read_version,
                                                std::ssize(lookup.pooled), std::ssize(lookup.mask)};
    file.write(std::as_bytes(std::span(header)));
    file.write(bytes_of(lookup.pooled));
    file.write(bytes_of(lookup.mask));
  }
}

/// Renames in one atomic step, also over an older checkpoint of the same step (which a run that was
/// resumed before it and trained on replaces).
void publish_directory(const std::string& temporary, const std::string& path) {
  if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    remove_all(temporary);  // now the older one
    return;
  }
  rename_atomic(temporary, path);
}

void remove_abandoned(const std::string& directory) {
  for (const std::string& name : list_directory(directory)) {
    if (name.starts_with(kAbandonedPrefix)) remove_all(directory + "/" + name);
  }
}

void remove_oldest(const std::string& directory, std::int64_t keep) {
  const std::vector<std::string> all = checkpoint_paths(directory);
  for (std::int64_t i = 0; i + keep < std::ssize(all); ++i) {
    // Renamed first: a half-removed checkpoint is never found under a final name.
    const std::filesystem::path path = all[static_cast<std::size_t>(i)];
    const std::string doomed = directory + "/" + kTemporaryPrefix + path.filename().string();
    rename_atomic(path.string(), doomed);
    remove_all(doomed);
  }
}

}  // namespace

void CheckpointContent::capture(Model& model) {
  for (const dense::DenseNetwork::NamedTensor& tensor : model.network->state()) {
    dense.push_back({tensor.name, tensor.shape, {tensor.values.begin(), tensor.values.end()}});
  }
  tables = model.specs.tables;
  rows = model.store->take_snapshot(step);
}

void write_pending(const std::string& directory,
                   std::int64_t step,
                   std::int64_t rank,
                   const std::vector<PendingLookup>& pending) {
  FileWriter file(temporary_path(directory, step) + "/" + pending_file(rank));
  write_lookups(pending, file);
  file.finish();
}

CheckpointWriter::CheckpointWriter(std::string directory, std::int64_t keep)
    : directory_(std::move(directory)), keep_(keep) {
  ensure_directory(directory_);
  for (const std::string& name : list_directory(directory_)) {
    if (name.starts_with(kTemporaryPrefix)) remove_all(directory_ + "/" + name);
  }
}

CheckpointWriter::~CheckpointWriter() {
  try {
    wait();
  } catch (const std::exception& error) {
    log_error("checkpoint: {}", error.what());
  }
}

void CheckpointWriter::set_newer_aside(std::int64_t step) {
  for (const std::string& path : checkpoint_paths(directory_)) {
    const std::string name = std::filesystem::path(path).filename().string();
    if (name <= checkpoint_name(step)) continue;
    const std::string aside = concat(directory_, "/", kAbandonedPrefix, name);
    remove_all(aside);
    rename_atomic(path, aside);
    log_warning("checkpoint {} is later than step {}, from where the run continues: renamed to {}",
                path, step, aside);
  }
}

void CheckpointWriter::update_metrics(std::int64_t step,
                                      const std::map<std::string, double>& metrics) {
  const std::string path = directory_ + "/" + checkpoint_name(step);
  if (!std::filesystem::exists(path)) return;
  Manifest manifest = Manifest::read(path);
  manifest.metrics = metrics;
  write_file_atomic(path + "/" + kManifestFile, manifest.to_json());
}

void CheckpointWriter::prepare(std::int64_t step) {
  const std::string path = temporary_path(directory_, step);
  remove_all(path);
  ensure_directory(path);
}

void CheckpointWriter::start(std::unique_ptr<CheckpointContent> content) {
  wait();
  thread_ = std::thread([this, content = std::move(content)] {
    set_thread_name("checkpoint");
    try {
      publish(*content);
    } catch (...) {
      error_ = std::current_exception();
    }
  });
}

void CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void CheckpointWriter::publish(CheckpointContent& content) {
  const std::string name = checkpoint_name(content.step);
  const std::string temporary = temporary_path(directory_, content.step);
  try {
    if (content.positions.size() == 1) prepare(content.step);
    DirectoryWriter out(temporary);
    out.manifest.version = SATRAP_VERSION;
    out.manifest.created = fmt::format(
        "{:%Y-%m-%dT%H:%M:%SZ}",
        fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
    out.manifest.step = content.step;
    out.manifest.examples = content.examples;
    out.manifest.nonfinite_steps = content.nonfinite_steps;
    out.manifest.positions = content.positions;
    out.manifest.metrics = content.metrics;
    write_tables(content, out);
    write_dense(content, out);
    out.file(pending_file(0), [&](FileWriter& file) { write_lookups(content.pending, file); });
    for (std::int64_t rank = 1; rank < std::ssize(content.positions); ++rank) {
      out.adopt(pending_file(rank));
    }
    out.file(kTransformsFile, [&](FileWriter& file) {
      file.write(std::as_bytes(std::span(content.transforms_json)));
    });
    out.finish();
    const std::string path = directory_ + "/" + name;
    publish_directory(temporary, path);
    fsync_directory(directory_);
    remove_abandoned(directory_);
    last_path_ = path;
    log_info("checkpoint: step {} written to {}", content.step, path);
  } catch (const Error& error) {
    std::error_code ignored;
    std::filesystem::remove_all(temporary, ignored);
    const std::string newest = find_checkpoint(directory_);
    throw Error(error.code(), concat("checkpoint of step ", content.step, " failed: ", error.what(),
                                     newest.empty() ? "; there is no earlier one"
                                                    : "; the newest one is " + newest));
  }
  remove_oldest(directory_, keep_);
}

}  // namespace satrap::trainer
