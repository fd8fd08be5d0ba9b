#include "satrap/data/open_rows.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/data/pass_progress.h"
#include "satrap/data/row_count.h"
#include "src/data/deliveries/read_deliveries.h"
#include "src/data/files/file_list.h"
#include "src/data/passes/batch_reader.h"
#include "src/data/passes/role_passes.h"
#include "src/data/rows/row_selection.h"
#include "src/data/rows/said_lines.h"
#include "src/data/rows/shuffled_rows.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kCpusPerReader = 4;
constexpr std::uint64_t kShuffleStream = 0x73687566666C65;  // separates these draws from others
constexpr std::uint64_t kFitStream = 0x666974;

std::int64_t num_readers(const DataConfig& config) {
  if (config.reader_threads > 0) return config.reader_threads;
  return std::max<std::int64_t>(1, num_cpus() / kCpusPerReader);
}

/// Several ranks of a topic without an end read partitions of their own: this rank's share.
Dataset share_of(const Dataset& data, const ReadOptions& options) {
  return data.starting_at(data.topic_start()->share_of_rank(options.rank, options.world_size));
}

/// `is_limited`: too many of them end reading. `max_shown`: in the log; evaluations and the fitting
/// of transforms read the same rows again and again.
std::shared_ptr<BadRowPolicy> bad_row_policy(const Dataset& data,
                                             bool is_limited,
                                             std::int64_t max_shown = BadRows::kMaxMessages) {
  const DataConfig& config = data.config();
  return std::make_shared<BadRowPolicy>(
      config.on_bad_row == OnBadRow::kStop, is_limited ? config.bad_row_limit() : BadRowLimit(),
      [said = data.said()](const std::string& line) {
        if (said->is_new(line)) log_warning("{}", line);
      },
      max_shown);
}

/// The rows of a pass together with the schema that they refer to.
class OwningRows : public RowBlockSource {
 public:
  OwningRows(const Dataset& data, Role role, const RowPass& pass)
      : schema_(schema_of_role(data.schema(), data.config(), role)),
        rows_(open_role(data, role, bad_row_policy(data, false))->open(schema_, pass)) {}

  bool next(RowBlock& block) override { return rows_->next(block); }
  std::int64_t rows_per_epoch() const override { return rows_->rows_per_epoch(); }
  ReadStats stats() const override { return rows_->stats(); }
  void close() override { rows_->close(); }
  bool was_closed() const override { return rows_->was_closed(); }

 private:
  const Schema schema_;
  const std::unique_ptr<RowBlockSource> rows_;
};

/// The columns that are read for batches: a prediction keeps texts, and needs no labels and groups.
Schema schema_of_batches(const Dataset& data, Role role, const std::vector<std::string>& kept) {
  Schema schema = schema_of_role(data.schema(), data.config(), role);
  schema.kept = kept;
  if (role == Role::kEval) schema.kept_by = "train.slices";
  if (role != Role::kPredict) return schema;
  schema.leave_out_labels();
  schema.grouped = false;
  std::erase_if(schema.id_columns,
                [](const Schema::IdColumn& column) { return column.feature == Schema::kGroups; });
  return schema;
}

}  // namespace

std::unique_ptr<BatchSource> open_batches(const Dataset& data,
                                          const FittedTransforms& transforms,
                                          Role role,
                                          const ReadOptions& options) {
  const DataConfig& config = data.config();
  // A run must not lose what it has learned to an evaluation; a prediction has nan for such rows.
  const bool is_limited = role == Role::kTrain;
  const bool predicts = role == Role::kPredict;
  const bool is_endless = role == Role::kTrain && data.is_topic() && config.kafka.is_endless();
  const bool has_share = is_endless && options.world_size > 1;
  const std::shared_ptr<RolePasses> opened =
      open_role(has_share ? share_of(data, options) : data, role,
                bad_row_policy(data, is_limited, role == Role::kEval ? 1 : BadRows::kMaxMessages),
                options.open_deliveries);
  // It has no texts.
  if (!predicts && options.kept.empty()) opened->use_cache(/*writes=*/true);
  const std::shared_ptr<const RolePasses> passes = opened;
  if (options.epochs - options.start.epoch > 1) passes->require_rereadable("several epochs");
  if (options.start.batches > 0 && !data.is_topic()) {
    passes->require_rereadable("resuming in the middle");
  }

  const std::int64_t batch_size =
      options.batch_size > 0 ? options.batch_size
                             : std::max<std::int64_t>(1, batch_size_of(data) / options.world_size);
  const std::int64_t shuffle_rows = role == Role::kTrain ? config.shuffle_rows : 0;
  const RowSplit split = has_share ? RowSplit()
                                   : RowSplit{.rank = options.rank,
                                              .world_size = options.world_size,
                                              .rows_per_turn = batch_size};
  const auto shared_schema =
      std::make_shared<const Schema>(schema_of_batches(data, role, options.kept));
  const auto open = [=, num_threads = num_readers(config)](
                        std::int64_t epoch,
                        std::int64_t first_row) -> std::unique_ptr<RowBlockSource> {
    std::unique_ptr<RowBlockSource> rows =
        passes->open(*shared_schema, {.epoch = epoch,
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
  return std::make_unique<BatchReader>(
      *shared_schema, transforms, open, [passes] { return passes->files(); },
      [passes] { return passes->no_rows_message(); },
      BatchReader::Options{
          .batch_size = batch_size,
          .epochs = options.epochs,
          .prefetch_batches = options.prefetch_batches,
          .start = options.start,
          .ordered = shuffle_rows == 0,
          .looks_ahead = passes->is_rereadable(),
          .is_endless = is_endless,
          .rows_per_epoch = passes->num_rows(),
          .total_bytes = passes->total_bytes(),
          .may_be_empty = options.world_size > 1 || predicts,
          .bad_row_reasons = [passes] { return passes->bad_row_reasons(); },
          .topic_position =
              [passes](const DataPosition& position) { return passes->topic_position(position); },
      });
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

std::unique_ptr<RowBlockSource> open_rows(const Dataset& data, Role role, const RowPass& pass) {
  return std::make_unique<OwningRows>(data, role, pass);
}

std::unique_ptr<RowDeliveries> open_deliveries(const Dataset& data, const RowPass& pass) {
  const DataConfig& config = data.config();
  const auto schema =
      std::make_shared<const Schema>(schema_of_role(data.schema(), config, Role::kTrain));
  const auto bad_rows = std::make_shared<CollectedBadRows>();
  const std::shared_ptr<const RolePasses> passes = open_role(data, Role::kTrain, bad_rows);
  const bool is_topic = passes->topic_log() != nullptr;
  if (!is_topic &&
      (!passes->records() || passes->records()->files().size() != config.train.path.size())) {
    throw Error(ErrorCode::kInvalidData,
                concat("the ", config.train.path.size(), " files from '",
                       config.train.path.empty() ? "" : config.train.path.front(),
                       "' on are not files here"));
  }
  std::vector<DataFile> listed;
  if (!is_topic) listed = passes->records()->files();
  RowPass told = pass;
  told.tells_empty = is_topic && config.kafka.is_endless();  // which may be quiet for long
  return std::make_unique<ReadDeliveries>(schema, passes->open(*schema, told), bad_rows,
                                          passes->records(), std::move(listed),
                                          passes->topic_log());
}

void require_evaluation_rows(const Dataset& data) {
  const DataConfig& config = data.config();
  if (!config.has_eval()) return;
  const auto selection = RowSelection::of(config, Role::kEval);
  if (!selection || selection->condition().empty()) return;
  const std::shared_ptr<const RolePasses> passes =
      open_role(data, Role::kEval, bad_row_policy(data, false, /*max_shown=*/0));
  if (!passes->is_rereadable()) return;
  const Schema read = schema_of_role(data.schema(), config, Role::kEval);
  const auto rows = passes->open(read, {});
  RowBlock block;
  if (!rows->next(block)) throw Error(ErrorCode::kInvalidData, passes->no_rows_message());
}

FittedTransforms fit_transforms(const Dataset& data, std::int64_t seed, std::int64_t max_rows) {
  const Schema& schema = data.schema();
  if (!schema.needs_fit()) return fixed_transforms(schema);
  const DataConfig& config = data.config();
  const std::unique_ptr<RolePasses> passes =
      open_role(data, Role::kTrain, bad_row_policy(data, true, /*max_shown=*/0));
  passes->require_rereadable("z-scores and quantiles, which are fitted before training");
  passes->use_cache(/*writes=*/false);  // it may end before the last row
  const Schema read = schema_of_role(schema, config, Role::kTrain);
  const auto rows = passes->open(read, {.num_threads = num_readers(config)});
  PassProgress progress("fitting z-scores and ranges",
                        config.fit_rows > 0 ? 0 : rows->stats().total_bytes, data.stop());
  const std::int64_t fit_rows = config.fit_rows > 0     ? std::min(config.fit_rows, max_rows)
                                : max_rows == INT64_MAX ? 0
                                                        : max_rows;
  return fit_transforms(schema, *rows, fit_rows,
                        hash64(kFitStream, static_cast<std::uint64_t>(seed)),
                        [&] { progress.note(rows->stats().bytes); });
}

}  // namespace satrap::data
