#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "satrap/data/batch_source.h"
#include "satrap/data/dataset.h"
#include "satrap/data/role.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/row_deliveries.h"
#include "satrap/data/transforms.h"

namespace satrap::data {

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

  /// Opens the rows of kTrain that other processes read; empty: this process reads the files.
  OpenDeliveries open_deliveries = {};

  std::vector<std::string> kept = {};  // of kPredict, kEval: columns whose texts batches have
};

/// Opens the stream of batches of training or evaluation data. Rows are in the order of the files
/// or, for training with shuffle_rows > 0, shuffled in a buffer that depends on (seed, rank,
/// epoch) alone. One of several ranks may get no rows at all. Threads read, parse and batch ahead
/// of next(). Throws Error(kIo | kInvalidData | kInvalidConfig) if the files cannot be used; next()
/// throws if a file is found missing or truncated later.
std::unique_ptr<BatchSource> open_batches(const Dataset& data,
                                          const FittedTransforms& transforms,
                                          Role role,
                                          const ReadOptions& options);

/// The files that the patterns of `files` name now, in order. Those that cannot be used are left
/// out: reading them reports why.
std::vector<std::string> usable_files(const FilesConfig& files);

/// The raw rows of one pass. Reports bad rows to the log.
std::unique_ptr<RowBlockSource> open_rows(const Dataset& data, Role role, const RowPass& pass);

/// Throws Error(kInvalidData) if no row of the evaluation data meets their condition; reads up to
/// the first that does. Does nothing without evaluation data or without a condition.
void require_evaluation_rows(const Dataset& data);

/// The transforms of a job: fitted to the first `fit_rows` rows of the training data, and to no
/// more than `max_rows`, if the schema needs it.
FittedTransforms fit_transforms(const Dataset& data,
                                std::int64_t seed,
                                std::int64_t max_rows = INT64_MAX);

}  // namespace satrap::data
