#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "satrap/core/bounded_queue.h"
#include "satrap/core/mutex.h"
#include "satrap/data/batch_source.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "satrap/data/transforms.h"
#include "src/data/passes/batch_assembler.h"

namespace satrap::data {

/// Cuts the rows of several epochs into batches, in its own thread, which stays up to
/// prefetch_batches ahead of next().
class BatchReader : public BatchSource {
 public:
  struct Options {
    std::int64_t batch_size = 1;
    std::int64_t epochs = 1;
    std::int64_t prefetch_batches = 4;
    DataPosition start;
    /// Rows come in the order of their numbers, so that a pass can begin at start.next_row;
    /// otherwise (shuffled) the rows of earlier batches have to be read again.
    bool ordered = true;
    /// A full batch waits until it is known whether another one follows in its epoch. Not of a
    /// pipe, whose next row may never come.
    bool looks_ahead = true;
    bool is_endless = false;          // as BatchSource::is_endless()
    std::int64_t rows_per_epoch = 0;  // 0: unknown
    std::int64_t total_bytes = 0;     // of the files of an epoch, as in ReadStats
    bool may_be_empty = false;  // an epoch without rows is not an error: other ranks have them
    std::function<std::map<std::string, std::int64_t>()> bad_row_reasons = {};  // may be empty
    std::function<std::optional<TopicPosition>(const DataPosition&)> topic_position = {};  // too
  };

  /// Opens the pass of an epoch that begins at `first_row`.
  using OpenPass =
      std::function<std::unique_ptr<RowBlockSource>(std::int64_t epoch, std::int64_t first_row)>;

  /// `files` are those of an epoch, as BatchSource::files(); it is called by any thread. `no_rows`
  /// makes the error message for an epoch without rows.
  BatchReader(Schema schema,
              const FittedTransforms& transforms,
              OpenPass open,
              std::function<std::vector<DataFile>()> files,
              std::function<std::string()> no_rows,
              const Options& options);
  ~BatchReader() override;

  bool next(Batch& batch) override;
  bool wait(std::chrono::milliseconds at_most) override;
  bool is_endless() const override { return options_.is_endless; }
  DataPosition position() const override { return position_; }
  bool has_ended_epoch() const override { return ends_epoch_; }
  ReadStats stats() const override;
  std::vector<DataFile> files() const override { return files_(); }
  std::map<std::string, std::int64_t> bad_row_reasons() const override {
    if (!options_.bad_row_reasons) return {};
    return options_.bad_row_reasons();
  }
  std::optional<TopicPosition> topic_position(const DataPosition& position) const override {
    if (!options_.topic_position) return std::nullopt;
    return options_.topic_position(position);
  }
  std::int64_t rows_per_epoch() const override { return options_.rows_per_epoch; }
  void close() override;

 private:
  struct Item {
    Batch batch;
    DataPosition after;
    bool ends_epoch = false;
  };

  void run();
  void fail(std::exception_ptr error);
  bool run_epoch(std::int64_t epoch);
  bool start_pass(std::unique_ptr<RowBlockSource> pass);
  void end_pass();
  bool emit(const std::vector<RowPiece>& pieces, const DataPosition& after, bool ends_epoch);

  const Schema schema_;
  const BatchAssembler assembler_;
  const OpenPass open_;
  const std::function<std::vector<DataFile>()> files_;
  const std::function<std::string()> no_rows_;
  const Options options_;

  mutable Mutex mutex_;
  std::unique_ptr<RowBlockSource> pass_;  // changed by the loader's thread, under the mutex
  ReadStats finished_passes_ SATRAP_GUARDED_BY(mutex_);
  bool closed_ SATRAP_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ SATRAP_GUARDED_BY(mutex_);  // what ended the loader's thread early

  BoundedQueue<std::unique_ptr<Item>> ready_;
  BoundedQueue<std::unique_ptr<Item>> spare_;
  DataPosition position_;  // of the last batch returned, as ends_epoch_
  bool ends_epoch_ = false;
  std::atomic<std::int64_t> rows_{0};
  std::thread thread_;
};

}  // namespace satrap::data
