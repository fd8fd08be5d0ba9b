#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "satrap/data/config.h"
#include "satrap/data/data_file.h"
#include "satrap/data/role.h"
#include "satrap/data/schema.h"
#include "satrap/data/topic_position.h"

namespace satrap::data {

class JobCaches;
class SaidLines;
class SyntheticGenerator;
enum class FileFormat : std::uint8_t;
struct FileList;

/// Facts that the configuration of the data does not have.
struct DatasetContext {
  std::string folder = {};                  // of the job: in a record of files, paths begin there
  const std::atomic<bool>* stop = nullptr;  // set: counting and fitting end; may be null
  std::int64_t first_eval_row = -1;         // Dataset::first_eval_row, if it is known; else -1
};

/// The data of a job, resolved once: the files of training and of evaluation and their format,
/// where an evaluation part at the tail begins, where in a topic reading begins. Each is found when
/// it is first asked for, which may read files or ask brokers, and stays. Copies share it. Any
/// thread.
class Dataset {
 public:
  /// Opens nothing. Throws Error(kInvalidConfig) if the schema is none.
  explicit Dataset(DataConfig config, DatasetContext context = {});

  const DataConfig& config() const;
  const Schema& schema() const;
  const std::atomic<bool>* stop() const;

  bool is_generated() const;
  bool is_topic() const;  // of training; its evaluation data are files

  /// The training files, none opened; empty if rows are generated or of a topic. Paths are those of
  /// a record. Throws as open_batches does.
  std::vector<DataFile> training_files() const;
  std::vector<std::string> training_paths() const;  // as this process opens them
  std::vector<DataFile> without_folder(std::vector<DataFile> files) const;
  std::string path_of(const std::string& recorded) const;  // the way back

  /// The number of the first row that data.eval keeps for evaluation by tail; counts the rows if
  /// the context does not know it. At least one row is kept. Precondition: config().eval.by_tail().
  std::int64_t first_eval_row() const;

  /// The position where training on the topic begins, of starting_at() or from the brokers.
  std::shared_ptr<const TopicPosition> topic_start() const;

  /// The same data, whose topic is read from there.
  Dataset starting_at(TopicPosition position) const;

  /// For the other processes of the job: the files of training and evaluation, the first row of
  /// evaluation and the place in the topic. Finds what has not been found.
  std::string resolved() const;

  /// On rank `rank`: these data, of which the chief's resolved() is known. Throws
  /// Error(kInvalidConfig) if this rank sees other files than the chief.
  Dataset as_resolved(const std::string& resolved, std::int64_t rank) const;

  // For src/data alone.
  const FileList& files(Role role) const;
  FileFormat format(Role role) const;
  std::shared_ptr<const SyntheticGenerator> generator() const;
  const std::shared_ptr<JobCaches>& caches() const;
  const std::shared_ptr<SaidLines>& said() const;

 private:
  class State;
  std::shared_ptr<State> state_;
  std::shared_ptr<const TopicPosition> topic_start_;  // null: state_ finds it
};

}  // namespace satrap::data
