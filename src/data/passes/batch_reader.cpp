#include "src/data/passes/batch_reader.h"

#include <algorithm>
#include <new>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/thread_group.h"

namespace satrap::data {

BatchReader::BatchReader(Schema schema,
                         const FittedTransforms& transforms,
                         OpenPass open,
                         std::function<std::vector<DataFile>()> files,
                         std::function<std::string()> no_rows,
                         const Options& options)
    : schema_(std::move(schema)),
      assembler_(schema_, transforms),
      open_(std::move(open)),
      files_(std::move(files)),
      no_rows_(std::move(no_rows)),
      options_(options),
      ready_(static_cast<std::size_t>(options.prefetch_batches)),
      spare_(static_cast<std::size_t>(options.prefetch_batches) + 2),
      position_(options.start) {
  SATRAP_CHECK(options.batch_size >= 1, "batch_size must be positive, got ", options.batch_size);
  SATRAP_CHECK(options.prefetch_batches >= 1, "prefetch_batches must be positive, got ",
               options.prefetch_batches);
  thread_ = start_thread("data-batch", [this] { run(); });
}

BatchReader::~BatchReader() {
  close();
  thread_.join();
}

void BatchReader::run() {
  try {
    for (std::int64_t epoch = options_.start.epoch; epoch < options_.epochs; ++epoch) {
      if (!run_epoch(epoch)) break;
    }
  } catch (const std::bad_alloc&) {
    fail(std::make_exception_ptr(
        Error(ErrorCode::kUnavailable,
              "out of memory for the rows and batches that are read ahead: fewer "
              "data.reader_threads, smaller data.batch_size and data.shuffle_rows need less")));
  } catch (...) {
    fail(std::current_exception());
  }
  ready_.close();
}

void BatchReader::fail(std::exception_ptr error) {
  const MutexLock lock(mutex_);
  error_ = std::move(error);
}

/// Produces the batches of one epoch, or of its rest at the start. Returns false once closed.
bool BatchReader::run_epoch(std::int64_t epoch) {
  DataPosition after = epoch == options_.start.epoch ? options_.start : DataPosition{epoch, 0, 0};
  if (!options_.ordered) after.next_row = 0;
  std::int64_t to_skip = after.next_row == 0 ? after.batches * options_.batch_size : 0;
  const bool from_beginning = after.next_row == 0;
  if (!start_pass(open_(epoch, after.next_row))) return false;

  std::vector<std::unique_ptr<RowBlock>> used;  // `pieces` point into them, and into no others
  std::vector<std::unique_ptr<RowBlock>> unused;
  std::vector<RowPiece> pieces;  // of the batch that is being collected
  std::int64_t collected = 0;
  bool any_rows = false;
  const auto hand_out = [&](bool ends_epoch) {
    ++after.batches;
    if (!emit(pieces, after, ends_epoch)) return false;
    pieces.clear();
    collected = 0;
    std::move(used.begin(), used.end() - 1, std::back_inserter(unused));
    used.erase(used.begin(), used.end() - 1);
    return true;
  };
  while (true) {
    if (unused.empty()) unused.push_back(std::make_unique<RowBlock>());
    bool has_block = false;
    try {
      has_block = pass_->next(*unused.back());
    } catch (...) {  // it comes after the batches before it
      if (collected == options_.batch_size) hand_out(false);
      throw;
    }
    if (!has_block) break;
    any_rows = true;
    used.push_back(std::move(unused.back()));
    unused.pop_back();
    const RowBlock& block = *used.back();

    std::int64_t row = std::min(to_skip, block.num_rows);
    to_skip -= row;
    while (row < block.num_rows) {
      if (collected == options_.batch_size && !hand_out(false)) return false;
      const std::int64_t end = std::min(row + options_.batch_size - collected, block.num_rows);
      pieces.push_back({&block, row, end});
      collected += end - row;
      row = end;
      if (options_.ordered) after.next_row = block.row_number(end - 1) + 1;
      after.rows_read = options_.ordered ? after.next_row : block.rows_read;
      const bool is_certain = row < block.num_rows || !options_.looks_ahead;
      if (collected == options_.batch_size && is_certain && !hand_out(false)) return false;
    }
    if (pieces.empty()) {
      unused.push_back(std::move(used.back()));
      used.pop_back();
    }
  }
  if (pass_->was_closed()) return false;
  if (!any_rows && from_beginning && !options_.may_be_empty) {
    const MutexLock lock(mutex_);
    if (!closed_) throw Error(ErrorCode::kInvalidData, no_rows_());
  }
  if (!pieces.empty() && !hand_out(options_.looks_ahead)) return false;
  end_pass();
  return true;
}

bool BatchReader::start_pass(std::unique_ptr<RowBlockSource> pass) {
  const MutexLock lock(mutex_);
  if (closed_) return false;
  pass_ = std::move(pass);
  return true;
}

void BatchReader::end_pass() {
  std::unique_ptr<RowBlockSource> ended;  // its threads are joined outside the lock
  const MutexLock lock(mutex_);
  const ReadStats stats = pass_->stats();
  finished_passes_.bytes += stats.bytes;
  finished_passes_.bad_rows = stats.bad_rows;
  finished_passes_.left_out = stats.left_out;
  finished_passes_.epoch_rows = stats.epoch_rows;
  finished_passes_.lag = stats.lag;
  finished_passes_.time_ms = stats.time_ms;
  ended = std::move(pass_);
}

bool BatchReader::emit(const std::vector<RowPiece>& pieces,
                       const DataPosition& after,
                       bool ends_epoch) {
  std::unique_ptr<Item> item = spare_.try_pop().value_or(nullptr);
  if (!item) item = std::make_unique<Item>();
  assembler_.assemble(pieces, item->batch);
  item->after = after;
  item->ends_epoch = ends_epoch;
  return ready_.push(std::move(item));
}

bool BatchReader::next(Batch& batch) {
  {
    const MutexLock lock(mutex_);
    if (closed_) return false;
  }
  std::optional<std::unique_ptr<Item>> item = ready_.pop();
  const MutexLock lock(mutex_);
  if (closed_) return false;
  if (!item) {
    if (error_) std::rethrow_exception(error_);
    return false;
  }
  std::swap(batch, (*item)->batch);
  position_ = (*item)->after;
  ends_epoch_ = (*item)->ends_epoch;
  rows_.fetch_add(batch.num_examples, std::memory_order_relaxed);
  spare_.push(std::move(*item));
  return true;
}

bool BatchReader::wait(std::chrono::milliseconds at_most) {
  return !options_.is_endless || ready_.wait(at_most);
}

/// `bad_rows` and `left_out` of a pass count those of earlier passes too: they share one policy.
ReadStats BatchReader::stats() const {
  const MutexLock lock(mutex_);
  ReadStats stats = finished_passes_;
  if (pass_) {
    const ReadStats pass = pass_->stats();
    stats.bytes += pass.bytes;
    stats.bad_rows = pass.bad_rows;
    stats.left_out = pass.left_out;
    stats.lag = pass.lag;
    stats.time_ms = pass.time_ms;
    if (stats.epoch_rows == 0.0) stats.epoch_rows = pass.epoch_rows;
  }
  stats.rows = rows_.load(std::memory_order_relaxed);
  stats.total_bytes = options_.total_bytes;
  return stats;
}

void BatchReader::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  if (pass_) pass_->close();
  ready_.close();
  spare_.close();
}

}  // namespace satrap::data
