#include "src/data/passes/file_passes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "satrap/core/error.h"
#include "src/data/columnar/parquet_rows.h"
#include "src/data/deliveries/delivered_rows.h"
#include "src/data/text/text_rows.h"

namespace satrap::data {

FilePasses::FilePasses(const Dataset& data, Rows rows, const OpenDeliveries& elsewhere)
    : RolePasses(data, std::move(rows)),
      files_(data.files(this->rows().role)),
      format_(data.format(this->rows().role)),
      elsewhere_(elsewhere) {
  if (this->rows().role == Role::kTrain) records_ = std::make_shared<FileRecords>(files_.files);
  if (data.config().eval.is_part()) divide();
  if (elsewhere_) require_rereadable("data.loaders, other processes that read them");
}

void FilePasses::divide() {
  const EvalConfig& eval = data().config().eval;
  require_rereadable("data.eval.fraction, a part of them for evaluation");
  if (!eval.by_tail()) return;
  first_eval_row_ = data().first_eval_row();
  if (first_eval_row_ > 0) return;
  throw Error(ErrorCode::kInvalidData, concat("data.eval.fraction = ", eval.fraction,
                                              " leaves no row of the training data ('",
                                              files_.files.front().path, "') to train on"));
}

void FilePasses::use_cache(bool writes) {
  const CacheConfig& config = data().config().cache;
  if (!config.is_on()) return;
  if (rows().role == Role::kTrain) require_rereadable("data.cache");
  if (!is_rereadable()) return;
  const std::shared_ptr<const RowSelection>& selection = rows().selection;
  cache_ = std::make_unique<ParsedRowCache>(ParsedRowCache::Options{
      .config = config,
      .caches = data().caches(),
      .rows = role_name(),
      .identity = concat(name_of(format_), '\n', parsing_of(data().schema()),
                         selection ? selection->identity() : "", identity_of_negatives()),
      .files = files_,
      .records = records_,
      .bad_rows = rows().bad_rows,
      .writes = writes});
}

std::string FilePasses::identity_of_negatives() const {
  const double negatives = data().config().train.negatives;
  const bool are_all = rows().role != Role::kTrain || negatives == 1.0;
  return are_all ? "" : fmt::format("negatives: {}\n", negatives);
}

std::vector<DataFile> FilePasses::files() const {
  return records_ ? data().without_folder(records_->files()) : std::vector<DataFile>();
}

std::unique_ptr<RowBlockSource> FilePasses::open_limited(const Schema& schema,
                                                         const RowPass& pass) const {
  RowPass own = pass;
  const bool is_training = rows().role == Role::kTrain;
  if (first_eval_row_ >= 0 && is_training) {
    own.max_rows = own.max_rows > 0 ? std::min(own.max_rows, first_eval_row_) : first_eval_row_;
  } else if (first_eval_row_ >= 0) {
    own.first_row = std::max(own.first_row, first_eval_row_);
  }
  if (!cache_) return parse(schema, own);
  const std::int64_t begin_row = is_training ? 0 : std::max<std::int64_t>(0, first_eval_row_);
  return cache_->open(schema, own, begin_row,
                      [this, &schema](const RowPass& parsed) { return parse(schema, parsed); });
}

std::unique_ptr<RowBlockSource> FilePasses::parse(const Schema& schema, const RowPass& pass) const {
  const std::shared_ptr<BadRowPolicy>& bad_rows = rows().bad_rows;
  if (elsewhere_) {
    return std::make_unique<DeliveredRows>(elsewhere_(data(), pass), pass, bad_rows, records_,
                                           nullptr);
  }
  if (is_columnar(format_)) {
    return std::make_unique<ParquetRows>(schema, files_, pass, bad_rows, records_);
  }
  return std::make_unique<TextRows>(schema, files_, pass, bad_rows, LineCutter::Limits{}, records_,
                                    format_);
}

}  // namespace satrap::data
