#include "satrap/data/loader.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/data/pass_progress.h"
#include "satrap/data/row_count.h"
#include "src/data/batch_loader.h"
#include "src/data/delivered_rows.h"
#include "src/data/file_format.h"
#include "src/data/file_list.h"
#include "src/data/file_records.h"
#include "src/data/generated_rows.h"
#include "src/data/parquet_rows.h"
#include "src/data/read_deliveries.h"
#include "src/data/row_cache.h"
#include "src/data/row_selection.h"
#include "src/data/shuffled_rows.h"
#include "src/data/text_rows.h"
#include "src/data/topic_log.h"
#include "src/data/topic_source.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kCpusPerReader = 4;
constexpr std::uint64_t kShuffleStream = 0x73687566666C65;  // separates these draws from others
constexpr std::uint64_t kFitStream = 0x666974;

const FilesConfig& files_of(const DataConfig& config, Role role) {
  if (role == Role::kTrain || config.eval.is_part()) return config.train;
  return config.eval;
}

std::string name_of(Role role) {
  return role == Role::kTrain ? "training" : role == Role::kEval ? "evaluation" : "prediction";
}

std::int64_t num_readers(const DataConfig& config) {
  if (config.reader_threads > 0) return config.reader_threads;
  return std::max<std::int64_t>(1, num_cpus() / kCpusPerReader);
}

/// Of a topic without an end, several ranks read partitions of their own: the one of this rank.
DataConfig share_of(DataConfig config, const ReadOptions& options) {
  const std::shared_ptr<const TopicPosition>& all = config.kafka.position;
  config.kafka.position = std::make_shared<const TopicPosition>(
      (all ? *all : begin_topic(config)).share_of_rank(options.rank, options.world_size));
  return config;
}

/// `is_limited`: too many of them end reading. `max_shown`: in the log; evaluations and the fitting
/// of transforms read the same rows again and again.
std::shared_ptr<BadRowPolicy> bad_row_policy(const DataConfig& config,
                                             bool is_limited,
                                             std::int64_t max_shown = BadRows::kMaxMessages) {
  return std::make_shared<BadRowPolicy>(
      config.on_bad_row == "stop", is_limited ? config.bad_row_limit() : BadRowLimit(),
      [words = config.words](const std::string& line) {
        if (words->is_new(line)) log_warning("{}", line);
      },
      max_shown);
}

/// The generator that `config` shares, if it is of the same rows, or a new one.
std::shared_ptr<const SyntheticGenerator> generator_of(const DataConfig& config) {
  if (config.generator && config.generator->config() == config.synthetic) return config.generator;
  return std::make_shared<const SyntheticGenerator>(config.synthetic);
}

/// Opens passes over the data of one role.
class PassOpener {
 public:
  /// `elsewhere`, if not empty: reads the rows instead of this process.
  PassOpener(const DataConfig& config,
             Role role,
             std::shared_ptr<BadRowPolicy> bad_rows,
             const OpenDeliveries& elsewhere = {})
      : role_(role),
        max_rows_(files_of(config, role).max_rows),
        folder_(config.folder),
        bad_rows_(std::move(bad_rows)) {
    if (config.resolved_format() == "synthetic") {
      generator_ = generator_of(config);
      offset_ = role == Role::kTrain ? 0 : config.synthetic.rows;
      num_rows_ = role == Role::kTrain ? config.synthetic.rows : config.synthetic.eval_rows;
      return;
    }
    selection_ = RowSelection::of(config, role);
    const FilesConfig& files = files_of(config, role);
    if (files.path.empty()) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat("data.", role == Role::kTrain ? "train" : "eval", ".path: is not set"));
    }
    if (reads_topic(config) && role == Role::kTrain) {
      topic_config_ = config;
      format_ = format_of_topic(config);
      topic_ = config.kafka.position ? *config.kafka.position : begin_topic(config);
      topic_log_ = std::make_shared<TopicLog>(*topic_);
      files_.files = {{.path = files.path.front()}};
      files_.rereadable = !config.kafka.is_endless();
      if (elsewhere) read_elsewhere(config, elsewhere);
      return;
    }
    files_ = list_files(files.path);
    format_ = format_of(config.format, files_);
    if (role == Role::kTrain) records_ = std::make_shared<FileRecords>(files_.files);
    if (config.eval.is_part()) divide(config);
    if (!elsewhere) return;
    require_rereadable("data.loaders, other processes that read them");
    read_elsewhere(config, elsewhere);
  }

  /// `schema` must outlive the pass.
  std::unique_ptr<RowBlockSource> open(const Schema& schema, RowPass pass) const {
    pass.max_rows = pass.max_rows > 0 && max_rows_ > 0 ? std::min(pass.max_rows, max_rows_)
                                                       : std::max(pass.max_rows, max_rows_);
    pass.selection = selection_;
    if (first_eval_row_ >= 0 && role_ == Role::kTrain) {
      pass.max_rows =
          pass.max_rows > 0 ? std::min(pass.max_rows, first_eval_row_) : first_eval_row_;
    } else if (first_eval_row_ >= 0) {
      pass.first_row = std::max(pass.first_row, first_eval_row_);
    }
    if (generator_) return std::make_unique<GeneratedRows>(generator_, offset_, num_rows_, pass);
    if (topic_ && !elsewhere_) {
      return std::make_unique<TextRows>(
          schema, open_topic_pass(topic_config_, schema, *topic_, pass, topic_log_), pass,
          bad_rows_, format_);
    }
    if (!cache_) return parse(schema, pass);
    const std::int64_t begin_row =
        role_ == Role::kTrain ? 0 : std::max<std::int64_t>(0, first_eval_row_);
    return cache_->open(schema, pass, begin_row,
                        [this, &schema](const RowPass& parsed) { return parse(schema, parsed); });
  }

  /// Lets passes read the cache that `config` names, if any, and write it. `schema`: that of all.
  void use_cache(const DataConfig& config, const Schema& schema, bool writes) {
    if (!config.cache.is_on()) return;
    if (role_ == Role::kTrain) require_rereadable("data.cache");
    if (!is_rereadable()) return;
    cache_ = std::make_unique<RowCache>(
        RowCache::Options{.config = config.cache,
                          .rows = name_of(role_),
                          .identity = concat(name_of(format_), '\n', parsing_of(schema),
                                             selection_ ? selection_->identity() : ""),
                          .files = files_,
                          .records = records_,
                          .bad_rows = bad_rows_,
                          .writes = writes});
  }

  bool is_rereadable() const { return generator_ || files_.rereadable; }

  /// Throws Error(kInvalidConfig) if the data cannot be read more than once.
  void require_rereadable(const std::string& purpose) const {
    if (is_rereadable()) return;
    throw Error(ErrorCode::kInvalidConfig,
                concat(name_of(role_), " data from '", files_.files.front().path,
                       "' can be read only once, which rules out ", purpose));
  }

  /// Rows of an epoch if known, else 0.
  std::int64_t num_rows() const {
    if (!generator_) return 0;
    return max_rows_ > 0 ? std::min(max_rows_, num_rows_) : num_rows_;
  }

  const std::shared_ptr<FileRecords>& records() const { return records_; }
  const std::shared_ptr<TopicLog>& topic_log() const { return topic_log_; }

  /// The files, with what the passes have seen of them; empty if the rows are generated.
  std::vector<DataFile> files() const {
    return records_ ? without_folder(records_->files(), folder_) : std::vector<DataFile>();
  }

  std::optional<TopicPosition> topic_position(const DataPosition& position) const {
    return topic_log_ ? std::optional(topic_log_->at(position)) : std::nullopt;
  }

  std::map<std::string, std::int64_t> bad_row_reasons() const { return bad_rows_->reasons(); }

  std::string no_rows_message() const {
    if (generator_) return concat("data.synthetic: no rows for the ", name_of(role_), " data");
    std::string message =
        concat("no row of the ", name_of(role_), " data can be used ('", files_.files.front().path,
               "'", files_.files.size() > 1 ? " and others" : "", ")");
    if (selection_ && !selection_->condition().empty()) {
      message += concat("; only rows that meet ", selection_->condition(), " are read");
    }
    if (bad_rows_->count() > 0) {
      message += concat(": ", bad_rows_->count(), " bad rows; the first: ", bad_rows_->first());
    }
    return message;
  }

 private:
  /// The reader is told the names of the files, or where in the topic to begin.
  void read_elsewhere(DataConfig config, const OpenDeliveries& elsewhere) {
    config.train.path = files_.paths();
    if (topic_) config.kafka.position = std::make_shared<const TopicPosition>(*topic_);
    elsewhere_ = [config, elsewhere](const RowPass& pass) { return elsewhere(config, pass); };
  }

  /// A pass over files, or by other processes. `pass` has the limits of the configuration.
  std::unique_ptr<RowBlockSource> parse(const Schema& schema, const RowPass& pass) const {
    if (elsewhere_) {
      return std::make_unique<DeliveredRows>(elsewhere_(pass), pass, bad_rows_, records_,
                                             topic_log_);
    }
    if (is_columnar(format_)) {
      return std::make_unique<ParquetRows>(schema, files_, pass, bad_rows_, records_);
    }
    return std::make_unique<TextRows>(schema, files_, pass, bad_rows_, LineCutter::Limits{},
                                      records_, format_);
  }

  void divide(const DataConfig& config) {
    require_rereadable("data.eval.fraction, a part of them for evaluation");
    if (!config.eval.by_tail()) return;
    first_eval_row_ = first_eval_row(config);
    if (first_eval_row_ > 0) return;
    throw Error(ErrorCode::kInvalidData, concat("data.eval.fraction = ", config.eval.fraction,
                                                " leaves no row of the training data ('",
                                                files_.files.front().path, "') to train on"));
  }

  Role role_;
  std::int64_t max_rows_ = 0;
  std::string folder_;
  std::shared_ptr<const RowSelection> selection_;  // of the files' rows
  std::int64_t first_eval_row_ = -1;               // if the rows from here on are for evaluation
  std::shared_ptr<BadRowPolicy> bad_rows_;
  FileList files_;
  std::shared_ptr<FileRecords> records_;  // of files_; only of training data
  std::function<std::unique_ptr<RowDeliveries>(const RowPass&)> elsewhere_;
  FileFormat format_ = FileFormat::kDelimited;
  std::unique_ptr<RowCache> cache_;     // of the rows of files_; null: none
  DataConfig topic_config_;             // if the rows are of a topic
  std::optional<TopicPosition> topic_;  // the same: where it begins or continues
  std::shared_ptr<TopicLog> topic_log_;
  std::shared_ptr<const SyntheticGenerator> generator_;  // if the rows are generated
  std::int64_t offset_ = 0;
  std::int64_t num_rows_ = 0;
};

/// The rows of a pass together with the schema that they refer to.
class OwningRows : public RowBlockSource {
 public:
  OwningRows(const DataConfig& config, const Schema& schema, Role role, const RowPass& pass)
      : schema_(schema_of_role(schema, config, role)),
        rows_(PassOpener(config, role, bad_row_policy(config, false)).open(schema_, pass)) {}

  bool next(RowBlock& block) override { return rows_->next(block); }
  std::int64_t rows_per_epoch() const override { return rows_->rows_per_epoch(); }
  ReadStats stats() const override { return rows_->stats(); }
  void close() override { rows_->close(); }
  bool was_closed() const override { return rows_->was_closed(); }

 private:
  const Schema schema_;
  const std::unique_ptr<RowBlockSource> rows_;
};

}  // namespace

std::unique_ptr<BatchSource> open_batches(const DataConfig& config,
                                          const Schema& schema,
                                          const FittedTransforms& transforms,
                                          Role role,
                                          const ReadOptions& options) {
  // A run must not lose what it has learned to an evaluation; a prediction has nan for such rows.
  const bool is_limited = role == Role::kTrain;
  const bool predicts = role == Role::kPredict;
  const bool is_endless = role == Role::kTrain && reads_topic(config) && config.kafka.is_endless();
  const bool has_share = is_endless && options.world_size > 1;
  const auto opened = std::make_shared<PassOpener>(
      has_share ? share_of(config, options) : config, role,
      bad_row_policy(config, is_limited, role == Role::kEval ? 1 : BadRows::kMaxMessages),
      options.open_deliveries);
  if (!predicts) opened->use_cache(config, schema, /*writes=*/true);
  const std::shared_ptr<const PassOpener> opener = opened;
  if (options.epochs - options.start.epoch > 1) opener->require_rereadable("several epochs");
  if (options.start.batches > 0 && !reads_topic(config)) {
    opener->require_rereadable("resuming in the middle");
  }

  DataConfig sized = config;
  choose_batch_size(sized);
  const std::int64_t batch_size =
      options.batch_size > 0 ? options.batch_size
                             : std::max<std::int64_t>(1, sized.batch_size / options.world_size);
  const std::int64_t shuffle_rows = role == Role::kTrain ? config.shuffle_rows : 0;
  const RowSplit split = has_share ? RowSplit()
                                   : RowSplit{.rank = options.rank,
                                              .world_size = options.world_size,
                                              .rows_per_turn = batch_size};
  Schema read = schema_of_role(schema, config, role);
  if (predicts) {  // labels and groups may be missing
    read.labelled = read.grouped = false;
    std::erase_if(read.id_columns,
                  [](const Schema::IdColumn& column) { return column.feature == Schema::kGroups; });
  }
  const auto shared_schema = std::make_shared<const Schema>(std::move(read));
  const auto open = [=, num_threads = num_readers(config)](
                        std::int64_t epoch,
                        std::int64_t first_row) -> std::unique_ptr<RowBlockSource> {
    std::unique_ptr<RowBlockSource> rows =
        opener->open(*shared_schema, {.epoch = epoch,
                                      .first_row = first_row,
                                      .split = split,
                                      .num_threads = num_threads,
                                      .keeps_every_line = predicts,
                                      .stop = options.stop});
    if (shuffle_rows == 0) return rows;
    const std::uint64_t stream =
        hash64(kShuffleStream, static_cast<std::uint64_t>(options.seed), epoch, options.rank);
    return std::make_unique<ShuffledRows>(std::move(rows), shuffle_rows, RandomStream{stream});
  };
  return std::make_unique<BatchLoader>(
      schema, transforms, open, [opener] { return opener->files(); },
      [opener] { return opener->no_rows_message(); },
      BatchLoader::Options{
          .batch_size = batch_size,
          .epochs = options.epochs,
          .prefetch_batches = options.prefetch_batches,
          .start = options.start,
          .ordered = shuffle_rows == 0,
          .looks_ahead = opener->is_rereadable(),
          .is_endless = is_endless,
          .rows_per_epoch = opener->num_rows(),
          .may_be_empty = options.world_size > 1 || predicts,
          .bad_row_reasons = [opener] { return opener->bad_row_reasons(); },
          .topic_position =
              [opener](const DataPosition& position) { return opener->topic_position(position); },
      });
}

void share_generator(DataConfig& config) {
  if (config.resolved_format() == "synthetic") config.generator = generator_of(config);
}

std::vector<std::string> usable_files(const FilesConfig& files) {
  std::vector<std::string> usable;
  for (const std::string& pattern : files.path) {
    try {
      std::ranges::move(list_files({pattern}).paths(), std::back_inserter(usable));
    } catch (const Error&) {
      continue;
    }
  }
  return usable;
}

std::unique_ptr<RowBlockSource> open_rows(const DataConfig& config,
                                          const Schema& schema,
                                          Role role,
                                          const RowPass& pass) {
  return std::make_unique<OwningRows>(config, schema, role, pass);
}

std::unique_ptr<RowDeliveries> open_deliveries(const DataConfig& config, const RowPass& pass) {
  const auto schema =
      std::make_shared<const Schema>(schema_of_role(resolve_schema(config), config, Role::kTrain));
  const auto bad_rows = std::make_shared<CollectedBadRows>();
  const PassOpener opener(config, Role::kTrain, bad_rows);
  const bool is_topic = opener.topic_log() != nullptr;
  if (!is_topic &&
      (!opener.records() || opener.records()->files().size() != config.train.path.size())) {
    throw Error(ErrorCode::kInvalidData,
                concat("the ", config.train.path.size(), " files from '",
                       config.train.path.empty() ? "" : config.train.path.front(),
                       "' on are not files here"));
  }
  std::vector<DataFile> listed;
  if (!is_topic) listed = opener.records()->files();
  RowPass told = pass;
  told.tells_empty = is_topic && config.kafka.is_endless();  // which may be quiet for long
  return std::make_unique<ReadDeliveries>(schema, opener.open(*schema, told), bad_rows,
                                          opener.records(), std::move(listed), opener.topic_log());
}

void require_evaluation_rows(const DataConfig& config, const Schema& schema) {
  if (!config.has_eval()) return;
  const auto selection = RowSelection::of(config, Role::kEval);
  if (!selection || selection->condition().empty()) return;
  const PassOpener opener(config, Role::kEval, bad_row_policy(config, false, /*max_shown=*/0));
  if (!opener.is_rereadable()) return;
  const Schema read = schema_of_role(schema, config, Role::kEval);
  const auto rows = opener.open(read, {});
  RowBlock block;
  if (!rows->next(block)) throw Error(ErrorCode::kInvalidData, opener.no_rows_message());
}

FittedTransforms fit_transforms(const DataConfig& config, const Schema& schema, std::int64_t seed) {
  if (!schema.needs_fit()) return fixed_transforms(schema);
  PassOpener opener(config, Role::kTrain, bad_row_policy(config, true, /*max_shown=*/0));
  opener.require_rereadable("z-scores and quantiles, which are fitted before training");
  opener.use_cache(config, schema, /*writes=*/false);  // it may end before the last row
  const Schema read = schema_of_role(schema, config, Role::kTrain);
  const auto rows = opener.open(read, {.num_threads = num_readers(config)});
  PassProgress progress("fitting z-scores and ranges",
                        config.fit_rows > 0 ? 0 : rows->stats().total_bytes, config.stop);
  return fit_transforms(schema, *rows, config.fit_rows,
                        hash64(kFitStream, static_cast<std::uint64_t>(seed)),
                        [&] { progress.note(rows->stats().bytes); });
}

}  // namespace satrap::data
