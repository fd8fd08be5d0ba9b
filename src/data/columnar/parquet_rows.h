#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "satrap/core/bounded_queue.h"
#include "satrap/core/mutex.h"
#include "satrap/core/thread_group.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/columnar/parquet_groups.h"
#include "src/data/columnar/parquet_parser.h"
#include "src/data/rows/pass_counts.h"

namespace satrap::data {

/// Reads the rows of Parquet files: each of pass.num_threads threads takes the next row group and
/// reads it block by block; next() returns the blocks in the order of rows. A thread may be
/// kRowsAhead rows ahead in its group (with one thread, a few blocks), so that memory is bounded
/// and larger groups are read by fewer threads at a time.
class ParquetRows : public RowBlockSource {
 public:
  static constexpr std::int64_t kBlockRows = 2048;
  static constexpr std::int64_t kRowsAhead = std::int64_t{128} << 10;
  static constexpr std::int64_t kFileBytes = std::int64_t{512} << 20;  // of all threads in memory

  /// As TextRows.
  ParquetRows(const Schema& schema,
              const FileList& files,
              const RowPass& pass,
              std::shared_ptr<BadRowPolicy> bad_rows,
              std::shared_ptr<FileRecords> records = nullptr);

  bool next(RowBlock& block) override;
  std::int64_t end_row() const override { return rows_read_; }
  ReadStats stats() const override { return counts_.stats(bytes_read_, rows_read_); }
  bool was_closed() const override { return closed_; }
  void close() override;

 private:
  struct Block {
    RowBlock rows;
    BadRows bad;
    std::int64_t end_row = 0;  // the number after that of the last row it stands for
    bool is_last = false;      // of its group, without rows
    std::exception_ptr error;  // of reading what would come here
  };

  /// A row group that is being read.
  struct Part {
    explicit Part(std::size_t num_blocks);
    ParquetGroup group;
    bool is_end = false;  // no group: the end of the pass
    std::vector<std::unique_ptr<Block>> blocks;
    BoundedQueue<Block*> free, full;
  };

  Part* begin_part();
  void fail(Part& part, std::exception_ptr error);
  void read_groups();
  void read_group(Part& part, ParquetParser& parser, std::vector<ParquetValues>& values);
  std::int64_t next_wanted(std::int64_t row, std::int64_t end) const;
  void end_part();

  const Schema& schema_;
  const RowPass pass_;
  const std::shared_ptr<FileRecords> records_;
  PassCounts counts_;
  std::atomic<std::int64_t> bytes_read_{0}, rows_read_{0};
  std::atomic<bool> closed_{false};

  Mutex turn_;  // whose holder takes the next group, so that `begun_` has them in order
  ParquetGroups groups_ SATRAP_GUARDED_BY(turn_);
  bool all_begun_ SATRAP_GUARDED_BY(turn_) = false;

  std::vector<std::unique_ptr<Part>> parts_;
  BoundedQueue<Part*> idle_, begun_;
  Part* part_ = nullptr;  // whose blocks next() returns
  bool ended_ = false;
  ThreadGroup threads_{[this] { ParquetRows::close(); }};
};

}  // namespace satrap::data
