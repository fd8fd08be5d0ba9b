#include "src/data/columnar/parquet_rows.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kBlocksOfOneThread = 8;
constexpr std::int64_t kLeastRows = 256;  // of a block, though some may be of other ranks

std::size_t num_blocks(std::int64_t num_threads) {
  return static_cast<std::size_t>(
      num_threads == 1 ? kBlocksOfOneThread : ParquetRows::kRowsAhead / ParquetRows::kBlockRows);
}

}  // namespace

ParquetRows::Part::Part(std::size_t num_blocks) : free(num_blocks), full(num_blocks) {
  for (std::size_t i = 0; i < num_blocks; ++i) {
    free.push(blocks.emplace_back(std::make_unique<Block>()).get());
  }
}

ParquetRows::ParquetRows(const Schema& schema,
                         const FileList& files,
                         const RowPass& pass,
                         std::shared_ptr<BadRowPolicy> bad_rows,
                         std::shared_ptr<FileRecords> records)
    : schema_(schema),
      pass_(pass),
      records_(records),
      counts_(pass, files.total_bytes, std::move(bad_rows)),
      groups_(schema, files, pass.max_rows, std::move(records), [this] { return closed_.load(); }),
      idle_(static_cast<std::size_t>(pass.num_threads) + 1),
      begun_(static_cast<std::size_t>(pass.num_threads) + 1) {
  SATRAP_CHECK(pass.num_threads >= 1, "num_threads must be positive, got ", pass.num_threads);
  for (std::int64_t i = 0; i <= pass.num_threads; ++i) {
    idle_.push(parts_.emplace_back(std::make_unique<Part>(num_blocks(pass.num_threads))).get());
  }
  for (std::int64_t i = 0; i < pass.num_threads; ++i) {
    threads_.start("data-parquet", [this] { read_groups(); });
  }
}

/// The next group, which this thread then reads. Null: there is none, or no more are wanted.
ParquetRows::Part* ParquetRows::begin_part() {
  const MutexLock lock(turn_);
  if (all_begun_) return nullptr;
  const std::optional<Part*> idle = idle_.pop();
  if (!idle) return nullptr;
  Part& part = **idle;
  try {
    part.is_end = all_begun_ = !groups_.next(part.group);
  } catch (...) {
    all_begun_ = true;
    fail(part, std::current_exception());
  }
  begun_.push(&part);
  return all_begun_ ? nullptr : &part;
}

void ParquetRows::fail(Part& part, std::exception_ptr error) {
  const std::optional<Block*> block = part.free.pop();
  if (!block) return;
  (*block)->error = std::move(error);
  part.full.push(*block);
}

void ParquetRows::read_groups() {
  ParquetParser parser(schema_, pass_);
  std::vector<ParquetValues> values;
  while (Part* const part = begin_part()) {
    try {
      translate_damage(part->group.source->path, [&] { read_group(*part, parser, values); });
    } catch (...) {
      fail(*part, std::current_exception());
    }
  }
}

void ParquetRows::read_group(Part& part,
                             ParquetParser& parser,
                             std::vector<ParquetValues>& values) {
  const ParquetGroup& group = part.group;
  const MappedParquet& source = *group.source;
  const std::int64_t end = group.first_row + group.num_rows;
  const bool may_have_rows = may_select(group, pass_.selection.get());
  std::int64_t at = may_have_rows ? group.first_row : end;  // the next row of the reader
  std::unique_ptr<ParquetGroupReader> reader;
  parser.begin(group);
  values.resize(source.columns.size());
  for (std::int64_t row = at; (row = next_wanted(row, end)) < end; row = at) {
    if (!reader) {
      reader = source.file->read_group(group.group, source.columns, kFileBytes / pass_.num_threads);
    }
    const std::optional<Block*> free = part.free.pop();
    if (!free) return;
    Block& block = **free;
    const std::int64_t run = std::max(pass_.split.run(row), kLeastRows);
    const std::int64_t num_rows = std::min({kBlockRows, run, end - row});
    if (row > at) reader->skip(row - at);
    reader->read(num_rows, values);
    parser.parse(values, row, num_rows, block.rows, block.bad);
    at = block.end_row = row + num_rows;
    if (!part.full.push(&block)) return;
  }
  const std::optional<Block*> free = part.free.pop();
  if (!free) return;
  Block& last = **free;
  last.rows.num_rows = 0;
  last.bad = {};
  if (!may_have_rows) {
    last.bad.left_out = pass_.split.count(std::max(group.first_row, pass_.first_row),
                                          pass_.max_rows > 0 ? std::min(end, pass_.max_rows) : end);
  }
  last.end_row = end;
  last.is_last = true;
  part.full.push(&last);
}

/// The first row from `row` on that is of this pass, or `end`.
std::int64_t ParquetRows::next_wanted(std::int64_t row, std::int64_t end) const {
  if (pass_.max_rows > 0 && row >= pass_.max_rows) return end;
  row = std::max(row, pass_.first_row);
  while (row < end && !pass_.split.owns(row)) row += std::min(pass_.split.run(row), end - row);
  return std::min(row, end);
}

bool ParquetRows::next(RowBlock& block) {
  while (!ended_) {
    if (part_ == nullptr) {
      const std::optional<Part*> begun = begun_.pop();
      if (!begun) break;
      part_ = *begun;
    }
    if (part_->is_end) {
      ended_ = true;
      counts_.end_pass();
      break;
    }
    const std::optional<Block*> taken = part_->full.pop();
    if (!taken) break;
    Block& read = **taken;
    ended_ = true;  // in case one of these throws
    if (read.error) std::rethrow_exception(read.error);
    rows_read_ = read.end_row;
    counts_.add(read.bad, read.rows.num_rows);
    ended_ = false;
    bytes_read_ = part_->group.bytes_to(read.end_row);
    const bool is_last = std::exchange(read.is_last, false);
    std::swap(block, read.rows);
    part_->free.push(&read);
    if (is_last) end_part();
    if (block.num_rows > 0) return true;
  }
  ended_ = true;
  block.num_rows = 0;
  return false;
}

void ParquetRows::end_part() {
  const ParquetGroup& group = part_->group;
  const std::int64_t end = group.first_row + group.num_rows;
  const bool is_read = group.is_last && (pass_.max_rows == 0 || end <= pass_.max_rows);
  if (records_ && is_read) records_->end(group.file, end);
  idle_.push(std::exchange(part_, nullptr));
}

void ParquetRows::close() {
  closed_ = true;
  idle_.close();
  begun_.close();
  for (const std::unique_ptr<Part>& part : parts_) {
    part->free.close();
    part->full.close();
  }
}

}  // namespace satrap::data
