#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/cache/parsed_row_cache.h"
#include "src/data/cache/parsed_row_file.h"
#include "src/data/files/file_records.h"
#include "src/data/rows/bad_row_policy.h"
#include "src/data/rows/pass_counts.h"

namespace satrap::data {

/// The rows of a pass from a cache. From a damaged block on they are parsed. So is the rest of a
/// block in which the pass begins if the block has bad rows, since it does not say which of them
/// come before.
class ParsedRows : public RowBlockSource {
 public:
  /// `begin_row`: the first row of the cache. The schema must outlive the source; `records` may be
  /// null; `total_bytes` are those of the data files.
  ParsedRows(const Schema& schema,
             std::shared_ptr<ParsedRowFile> file,
             const RowPass& pass,
             std::int64_t begin_row,
             std::int64_t total_bytes,
             ParsePass parse,
             std::shared_ptr<BadRowPolicy> bad_rows,
             std::shared_ptr<FileRecords> records);

  bool next(RowBlock& block) override;
  ReadStats stats() const override;
  void close() override;
  bool was_closed() const override { return closed_; }

 private:
  bool next_parsed(RowBlock& block);
  bool next_cached(RowBlock& block);
  bool begins_within(std::size_t block) const;
  void parse(std::int64_t first_row, std::int64_t end_row);
  void parse_rest(const std::string& why);
  void note_files(std::int64_t end_row);

  const Schema& schema_;
  const std::shared_ptr<ParsedRowFile> file_;
  const RowPass pass_;
  const std::int64_t begin_row_, total_bytes_;
  const ParsePass parse_;
  const std::shared_ptr<FileRecords> records_;
  PassCounts counts_;
  BadRows bad_;
  std::size_t next_block_ = 0;
  std::size_t next_file_ = 0;     // to be noted
  bool has_parsed_rest_ = false;  // whose parser has noted the files
  std::atomic<std::int64_t> rows_read_{0}, bytes_read_{0};
  std::atomic<bool> closed_{false};
  mutable Mutex mutex_;                     // guards parsed_, which another thread may close
  std::unique_ptr<RowBlockSource> parsed_;  // null: the next block comes from the file
};

/// The rows of a pass that parses, which go into a cache on their way.
class KeptParsedRows : public RowBlockSource {
 public:
  /// Called at the end of the pass with the complete writer.
  using Finish = std::function<void(ParsedRowWriter&)>;

  /// `max_rows`: as in RowPass.
  KeptParsedRows(std::unique_ptr<RowBlockSource> rows,
                 std::unique_ptr<ParsedRowWriter> writer,
                 std::int64_t max_rows,
                 std::shared_ptr<BadRowPolicy> bad_rows,
                 Finish finish);
  ~KeptParsedRows() override;

  bool next(RowBlock& block) override;
  std::int64_t rows_per_epoch() const override { return rows_->rows_per_epoch(); }
  ReadStats stats() const override { return rows_->stats(); }
  void close() override { rows_->close(); }
  bool was_closed() const override { return rows_->was_closed(); }

 private:
  void write(const RowBlock& block, bool is_end);
  double share_read(const RowBlock& block) const;

  const std::unique_ptr<RowBlockSource> rows_;
  std::unique_ptr<ParsedRowWriter> writer_;  // null: it has failed, or is finished
  const std::int64_t max_rows_;
  const std::shared_ptr<BadRowPolicy> bad_rows_;
  const Finish finish_;
  BadRows bad_;  // since the last block
};

}  // namespace satrap::data
