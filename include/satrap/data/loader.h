#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "satrap/data/batch_source.h"
#include "satrap/data/config.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/row_deliveries.h"
#include "satrap/data/schema.h"
#include "satrap/data/transforms.h"

namespace satrap::data {

/// kPredict reads only the inputs from the files of kEval: the label's column may be missing, and
/// no line is skipped, so that the n-th row is the n-th line (of all files, headers not counted).
/// Labels are 0, or NaN for a line without a usable row: a blank one, or a bad one if on_bad_row
/// does not end the run.
enum class Role { kTrain, kEval, kPredict };

struct ReadOptions {
  std::int64_t seed = 1;
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::int64_t epochs = 1;
  std::int64_t batch_size = 0;  // of this rank; 0: the configured one divided by world_size
  std::int64_t prefetch_batches = 4;
  DataPosition start = {};  // as position() of an earlier source with the same options

  /// Set by another thread to end the job; may be null. Where the data come from a pipe, a wait for
  /// them, or for the pipe's writer, then ends within 100 ms, as close() would end it. Files are
  /// read on: deterministic training needs some batches more to continue with the same bits.
  const std::atomic<bool>* stop = nullptr;

  /// Where other processes read the files' rows of kTrain; empty: this one does.
  OpenDeliveries open_deliveries = {};
};

/// Opens the stream of batches of training or evaluation data. Rows are in the order of the files
/// or, for training with shuffle_rows > 0, shuffled in a buffer that depends on (seed, rank,
/// epoch) alone. One of several ranks may get no rows at all. Threads read, parse and batch ahead
/// of next(). Throws Error(kIo | kInvalidData | kInvalidConfig) if the files cannot be used; next()
/// throws if a file is found missing or truncated later.
std::unique_ptr<BatchSource> open_batches(const DataConfig& config,
                                          const Schema& schema,
                                          const FittedTransforms& transforms,
                                          Role role,
                                          const ReadOptions& options);

/// Lets all passes over generated rows that are opened with copies of `config` share a generator,
/// which takes 0.1 s to begin.
void share_generator(DataConfig& config);

/// The files that the patterns of `files` name now, in order. Those that cannot be used are left
/// out: reading them reports why.
std::vector<std::string> usable_files(const FilesConfig& files);

/// The raw rows of one pass. Reports bad rows to the log.
std::unique_ptr<RowBlockSource> open_rows(const DataConfig& config,
                                          const Schema& schema,
                                          Role role,
                                          const RowPass& pass);

/// Throws Error(kInvalidData) if no row of the evaluation data meets their condition; reads up to
/// the first that does. Does nothing without evaluation data or without a condition.
void require_evaluation_rows(const DataConfig& config, const Schema& schema);

/// The transforms of a job: fitted on the first `fit_rows` rows of the training data if the schema
/// needs it.
FittedTransforms fit_transforms(const DataConfig& config, const Schema& schema, std::int64_t seed);

}  // namespace satrap::data
