#include "satrap/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <span>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "satrap/checkpoint/checkpoint_format.h"
#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "satrap/core/thread_group.h"
#include "satrap/table/table.h"
#include "src/checkpoint/checkpoint_directory.h"
#include "src/checkpoint/data_record.h"

namespace satrap::checkpoint {
namespace {

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

void write_tables(CheckpointContent& content, DirectoryWriter& out) {
  for (const table::TableSpec& spec : content.tables) {
    out.manifest.tables.push_back({.name = spec.name,
                                   .optimizer = name_of(spec.optimizer.type),
                                   .weights = name_of(spec.weights),
                                   .files = {},
                                   .dim = spec.dim,
                                   .row_bytes = spec.layout().row_bytes,
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

void write_lookups(const std::vector<pipeline::PendingLookup>& pending, FileWriter& file) {
  for (const pipeline::PendingLookup& lookup : pending) {
    const std::array<std::int64_t, 4> header = {lookup.step, lookup.read_version,
                                                std::ssize(lookup.pooled), std::ssize(lookup.mask)};
    file.write(std::as_bytes(std::span(header)));
    file.write(bytes_of(lookup.pooled));
    file.write(bytes_of(lookup.mask));
  }
}

std::string share_file(std::int64_t rank) { return fmt::format("topic-{}.json", rank); }

/// Makes the chief's position in the topic that of all ranks, and removes what they have written.
void merge_shares(CheckpointContent& content, const std::string& directory) {
  std::vector<data::TopicPosition> shares = {*content.topic};
  for (std::int64_t rank = 1; rank < std::ssize(content.positions); ++rank) {
    const std::string path = directory + "/" + share_file(rank);
    shares.push_back(data::TopicPosition::from_json(read_file(path), path));
    remove_all(path);
  }
  content.topic = data::TopicPosition::merge(shares);
}

void remove_abandoned(const std::string& directory) {
  for (const std::string& name : list_directory(directory)) {
    if (name.starts_with(kAbandonedPrefix)) remove_all(directory + "/" + name);
  }
}

void remove_oldest_in(const std::string& directory, std::int64_t keep, const std::string& best) {
  const std::vector<std::string> all = checkpoint_paths(directory);
  for (std::int64_t i = 0; i + keep < std::ssize(all); ++i) {
    // Renamed first: a half-removed checkpoint is never found under a final name.
    const std::filesystem::path path = all[static_cast<std::size_t>(i)];
    if (path.filename() == best) continue;
    const std::string doomed = directory + "/" + kTemporaryPrefix + path.filename().string();
    rename_atomic(path.string(), doomed);
    remove_all(doomed);
  }
}

}  // namespace

void CheckpointContent::capture(pipeline::Model& model) {
  dense = model.network->save();
  tables = model.specs.tables;
  rows = model.tables->take_snapshot(step);
}

void write_pending(const std::string& directory,
                   std::int64_t step,
                   std::int64_t rank,
                   const std::vector<pipeline::PendingLookup>& pending) {
  FileWriter file(temporary_path(directory, checkpoint_name(step)) + "/" + pending_file(rank));
  write_lookups(pending, file);
  file.finish();
}

void write_topic_share(const std::string& directory,
                       std::int64_t step,
                       std::int64_t rank,
                       const data::TopicPosition& share) {
  FileWriter file(temporary_path(directory, checkpoint_name(step)) + "/" + share_file(rank));
  file.write(share.to_json());
  file.finish();
}

CheckpointWriter::CheckpointWriter(std::string directory,
                                   std::int64_t keep,
                                   FailureLimits limits,
                                   std::optional<CheckpointMirror> mirror)
    : directory_(std::move(directory)), keep_(keep), limits_(limits), mirror_(std::move(mirror)) {
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
  if (mirror_) mirror_->checkpoints.set_newer_aside(step);
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

void CheckpointWriter::update_evaluation(std::int64_t step,
                                         const std::map<std::string, double>& metrics,
                                         const std::optional<EarlyStoppingState>& early_stopping) {
  const std::string name = checkpoint_name(step), path = directory_ + "/" + name;
  const std::string local = path + "/" + kManifestFile;
  const std::string here = std::filesystem::exists(path) ? read_file(local) : "";
  const std::string kept = mirror_ ? mirror_->checkpoints.find_manifest(name).value_or("") : here;
  if (kept.empty()) return;
  Manifest manifest = Manifest::from_json(kept, path);
  manifest.metrics = metrics;
  manifest.early_stopping = early_stopping;
  const std::string json = manifest.to_json();
  if (here == kept) write_file_atomic(local, json);  // else it is of another run that was there
  if (!mirror_) return;
  mirror_->before_manifest();
  mirror_->checkpoints.put_manifest(json, name);
}

void CheckpointWriter::upload(const std::string& directory, const std::string& name) const {
  if (!mirror_) return;
  mirror_->require_owned();
  mirror_->checkpoints.put(directory, name, mirror_->before_manifest);
}

void CheckpointWriter::remove_oldest(const std::string& best) const {
  if (!mirror_) return remove_oldest_in(directory_, keep_, best);
  mirror_->require_owned();
  mirror_->checkpoints.remove_oldest(keep_, best);
  remove_oldest_in(directory_, 1, "");
}

std::string CheckpointWriter::shown(const std::string& name) const {
  return mirror_ ? mirror_->checkpoints.url_of(name) : shown_path(directory_ + "/" + name);
}

void CheckpointWriter::prepare(std::int64_t step) {
  const std::string path = temporary_path(directory_, checkpoint_name(step));
  remove_all(path);
  ensure_directory(path);
}

void CheckpointWriter::start(std::unique_ptr<CheckpointContent> content) {
  settle();
  error_.reset();
  std::promise<void> done;
  done_ = done.get_future();
  thread_ = start_thread(
      "checkpoint", [this, content = std::move(content), done = std::move(done)]() mutable {
        try {
          publish(*content);
          num_failures_ = 0;
          saved_at_ = Clock::now();
        } catch (const Error& error) {
          add_failure(error);
        } catch (const std::exception& error) {
          add_failure(Error(ErrorCode::kIo, concat("checkpoint of step ", content->step,
                                                   " failed: ", error.what())));
        }
        done.set_value();
      });
}

void CheckpointWriter::add_failure(const Error& error) {
  error_ = error;
  ++num_failures_;
  if (!reached_limit().empty()) return;  // settle() throws
  log_warning("{}; the next one is tried when it is due", error.what());
}

void CheckpointWriter::join() {
  if (thread_.joinable()) thread_.join();
}

std::string CheckpointWriter::reached_limit() const {
  if (mirror_ && mirror_->is_lost()) return "this one ends";
  if (num_failures_ >= limits_.max_failures) {
    return num_failures_ == 1 ? "it ends the run (checkpoint.max_failures: 1)"
                              : concat(num_failures_, " in a row (checkpoint.max_failures)");
  }
  const bool is_late = limits_.max_unsaved && Clock::now() - saved_at_ >= *limits_.max_unsaved;
  return is_late ? fmt::format("none has been written for {:.0f} s (checkpoint.max_unsaved)",
                               std::chrono::duration<double>(Clock::now() - saved_at_).count())
                 : "";
}

bool CheckpointWriter::is_writing_after(std::chrono::milliseconds pause) const {
  return done_.valid() && done_.wait_for(pause) != std::future_status::ready;
}

void CheckpointWriter::settle() {
  join();
  const std::string limit = error_ ? reached_limit() : "";
  if (limit.empty()) return;
  const Error error = *std::exchange(error_, std::nullopt);
  throw Error(error.code(), concat(error.what(), "; ", limit));
}

void CheckpointWriter::wait() {
  join();
  if (error_) throw Error(*std::exchange(error_, std::nullopt));
}

void CheckpointWriter::publish(CheckpointContent& content) {
  const std::string name = checkpoint_name(content.step);
  const std::string temporary = temporary_path(directory_, name);
  try {
    if (content.positions.size() == 1) prepare(content.step);
    DirectoryWriter out(temporary);
    out.manifest.version = SATRAP_VERSION;
    out.manifest.created = fmt::format(
        "{:%Y-%m-%dT%H:%M:%SZ}",
        fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
    if (mirror_) out.manifest.folder = mirror_->owner;
    out.manifest.step = content.step;
    out.manifest.examples = content.examples;
    out.manifest.nonfinite_steps = content.nonfinite_steps;
    out.manifest.positions = content.positions;
    out.manifest.ended_epochs = content.ended_epochs;
    out.manifest.first_eval_row = content.first_eval_row;
    out.manifest.metrics = content.metrics;
    out.manifest.early_stopping = content.early_stopping;
    write_tables(content, out);
    write_dense(content, out);
    out.file(pending_file(0), [&](FileWriter& file) { write_lookups(content.pending, file); });
    for (std::int64_t rank = 1; rank < std::ssize(content.positions); ++rank) {
      out.adopt(pending_file(rank));
    }
    out.file(kTransformsFile, [&](FileWriter& file) {
      file.write(std::as_bytes(std::span(content.transforms_json)));
    });
    if (!content.data_files.empty()) {
      out.file(kDataFile, [&](FileWriter& file) { file.write(data_record(content.data_files)); });
    }
    if (content.topic) {
      if (content.topic->is_endless()) merge_shares(content, temporary);
      out.file(kTopicFile, [&](FileWriter& file) { file.write(content.topic->to_json()); });
    }
    out.file(kConfigFile, [&](FileWriter& file) { file.write(content.config_yaml); });
    out.finish();
    upload(temporary, name);
    replace_directory(temporary, directory_ + "/" + name);
    fsync_directory(directory_);
    remove_abandoned(directory_);
    log_info("checkpoint: step {} written to {}", content.step, shown(name));
  } catch (const Error& error) {
    std::error_code ignored;
    std::filesystem::remove_all(temporary, ignored);
    std::string newest = find_checkpoint(directory_);
    if (mirror_ && !newest.empty()) newest = shown(std::filesystem::path(newest).filename());
    throw Error(error.code(), concat("checkpoint of step ", content.step, " failed: ", error.what(),
                                     newest.empty() ? "; there is no earlier one"
                                                    : "; the newest one is " + newest));
  }
  const auto& best = content.early_stopping;
  remove_oldest(best ? checkpoint_name(best->best_step) : "");
  if (content.published) content.published(content);
}

}  // namespace satrap::checkpoint
