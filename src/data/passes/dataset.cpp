#include "satrap/data/dataset.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/mutex.h"
#include "satrap/data/row_count.h"
#include "satrap/data/synthetic.h"
#include "satrap/data/topic.h"
#include "src/data/cache/job_caches.h"
#include "src/data/files/file_list.h"
#include "src/data/passes/resolved_data.h"
#include "src/data/rows/said_lines.h"
#include "src/data/terms/file_format.h"

namespace satrap::data {

class Dataset::State {
 public:
  State(DataConfig config, DatasetContext context)
      : config_(std::move(config)),
        context_(std::move(context)),
        schema_(resolve_schema(config_)),
        caches_(std::make_shared<JobCaches>()),
        said_(std::make_shared<SaidLines>()),
        first_eval_row_(context_.first_eval_row) {}

  const DataConfig& config() const { return config_; }
  const DatasetContext& context() const { return context_; }
  const Schema& schema() const { return schema_; }
  const std::shared_ptr<JobCaches>& caches() const { return caches_; }
  const std::shared_ptr<SaidLines>& said() const { return said_; }

  /// The files of training or of evaluation. Of an evaluation part they are those of training.
  const FileList& files(Role role) { return part(role).files; }
  FileFormat format(Role role) { return part(role).format; }

  std::int64_t first_eval_row(const Dataset& data) {
    const MutexLock lock(once_);
    if (first_eval_row_ < 0) first_eval_row_ = count_first_eval_row(data);
    return first_eval_row_;
  }

  std::shared_ptr<const TopicPosition> topic_start() {
    const MutexLock lock(once_);
    if (!topic_start_) {
      topic_start_ = std::make_shared<const TopicPosition>(begin_topic(config_, context_.stop));
    }
    return topic_start_;
  }

  std::shared_ptr<const SyntheticGenerator> generator() {
    const MutexLock lock(once_);
    if (!generator_) generator_ = std::make_shared<const SyntheticGenerator>(config_.synthetic);
    return generator_;
  }

  /// Before the first call of files().
  void set_files(Role role, FileList files) {
    const MutexLock lock(mutex_);
    const FileFormat format = format_of(config_.format, files);
    (role == Role::kTrain ? train_ : eval_) = Part{std::move(files), format};
  }

 private:
  struct Part {
    FileList files;
    FileFormat format;
  };

  const Part& part(Role role) {
    const bool of_training = role == Role::kTrain || config_.eval.is_part();
    const std::vector<std::string>& patterns = of_training ? config_.train.path : config_.eval.path;
    if (patterns.empty()) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat("data.", role == Role::kTrain ? "train" : "eval", ".path: is not set"));
    }
    const MutexLock lock(mutex_);
    std::optional<Part>& part = of_training ? train_ : eval_;
    if (!part) {
      FileList files = list_files(patterns);
      const FileFormat format = format_of(config_.format, files);
      part = Part{std::move(files), format};
    }
    return *part;
  }

  const DataConfig config_;
  const DatasetContext context_;
  const Schema schema_;
  const std::shared_ptr<JobCaches> caches_;
  const std::shared_ptr<SaidLines> said_;
  Mutex mutex_;  // a list, once it is there, stays where it is
  std::optional<Part> train_ SATRAP_GUARDED_BY(mutex_), eval_ SATRAP_GUARDED_BY(mutex_);
  Mutex once_;  // locked before mutex_, for as long as it takes to find something
  std::int64_t first_eval_row_ SATRAP_GUARDED_BY(once_);
  std::shared_ptr<const TopicPosition> topic_start_ SATRAP_GUARDED_BY(once_);
  std::shared_ptr<const SyntheticGenerator> generator_ SATRAP_GUARDED_BY(once_);
};

Dataset::Dataset(DataConfig config, DatasetContext context)
    : state_(std::make_shared<State>(std::move(config), std::move(context))) {}

const DataConfig& Dataset::config() const { return state_->config(); }
const Schema& Dataset::schema() const { return state_->schema(); }
const std::atomic<bool>* Dataset::stop() const { return state_->context().stop; }
bool Dataset::is_generated() const { return config().is_synthetic(); }
bool Dataset::is_topic() const { return reads_topic(config()); }
const FileList& Dataset::files(Role role) const { return state_->files(role); }
FileFormat Dataset::format(Role role) const { return state_->format(role); }
std::int64_t Dataset::first_eval_row() const { return state_->first_eval_row(*this); }
const std::shared_ptr<JobCaches>& Dataset::caches() const { return state_->caches(); }
const std::shared_ptr<SaidLines>& Dataset::said() const { return state_->said(); }

std::shared_ptr<const SyntheticGenerator> Dataset::generator() const { return state_->generator(); }

std::shared_ptr<const TopicPosition> Dataset::topic_start() const {
  return topic_start_ ? topic_start_ : state_->topic_start();
}

Dataset Dataset::starting_at(TopicPosition position) const {
  Dataset moved = *this;
  moved.topic_start_ = std::make_shared<const TopicPosition>(std::move(position));
  return moved;
}

std::vector<DataFile> Dataset::without_folder(std::vector<DataFile> files) const {
  return data::without_folder(std::move(files), state_->context().folder);
}

std::string Dataset::path_of(const std::string& recorded) const {
  if (!is_relative_path(recorded)) return recorded;
  return (std::filesystem::path(state_->context().folder) / recorded).string();
}

std::vector<DataFile> Dataset::training_files() const {
  if (is_generated() || is_topic()) return {};
  return without_folder(files(Role::kTrain).files);
}

std::vector<std::string> Dataset::training_paths() const {
  return is_generated() || is_topic() ? std::vector<std::string>() : files(Role::kTrain).paths();
}

std::string Dataset::resolved() const {
  const DataConfig& config = this->config();
  ResolvedData all;
  if (!is_generated() && !is_topic()) all.train = without_folder(files(Role::kTrain).files);
  if (!is_generated() && !config.eval.path.empty()) {
    all.eval = without_folder(files(Role::kEval).files);
  }
  if (config.eval.by_tail()) all.first_eval_row = first_eval_row();
  if (is_topic()) all.topic = topic_start()->to_json();
  return to_bytes(all);
}

Dataset Dataset::as_resolved(const std::string& resolved, std::int64_t rank) const {
  ResolvedData all = read_resolved_data(resolved);
  DatasetContext context = state_->context();
  context.first_eval_row = all.first_eval_row;
  Dataset known(config(), std::move(context));
  const auto tell = [&](Role role, std::vector<DataFile>& files) {
    for (DataFile& file : files) file.path = path_of(file.path);
    if (!files.empty()) known.state_->set_files(role, as_seen_here(files, rank));
  };
  tell(Role::kTrain, all.train);
  tell(Role::kEval, all.eval);
  if (all.topic.empty()) return known;
  return known.starting_at(TopicPosition::from_json(all.topic, "what rank 0 has sent"));
}

}  // namespace satrap::data
