#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/files/byte_stream.h"
#include "src/data/files/file_records.h"
#include "src/data/terms/file_format.h"
#include "src/data/text/quoted_lines.h"
#include "src/data/text/text_block_source.h"

namespace satrap::data {

/// Cuts the files of a pass into blocks of whole lines, numbers the lines, and drops blocks without
/// rows of the pass. One thread at a time, except for cancel() and the counter.
class LineCutter : public TextBlockSource {
 public:
  struct Limits {
    std::int64_t block_bytes = std::int64_t{256} << 10;
    std::int64_t line_bytes = std::int64_t{64} << 20;
  };

  /// `schema` must outlive the cutter. `records`, if any, are of the files `paths` and are told
  /// what is read.
  LineCutter(const Schema& schema,
             std::vector<std::string> paths,
             const RowPass& pass,
             const Limits& limits,
             std::shared_ptr<FileRecords> records = nullptr,
             FileFormat format = FileFormat::kDelimited);

  /// Throws as ByteStream, and Error(kInvalidData) for a line beyond the limit,
  /// Error(kInvalidConfig) if a file's columns do not fit the schema.
  bool next(TextBlock& block) override;

  /// Ends a waiting read of a pipe.
  void cancel() override { interruption_.cancel(); }
  bool was_cancelled() const override { return interruption_.is_cancelled(); }

  /// As they are on the disk.
  std::int64_t bytes_read() const override { return bytes_read_.load(std::memory_order_relaxed); }
  std::int64_t rows_read() const override { return rows_read_.load(std::memory_order_relaxed); }

 private:
  bool cut(TextBlock& block);
  std::int64_t fill(TextBlock& block);
  std::int64_t find_end(TextBlock& block, std::int64_t size, std::int64_t searched);
  void carry(const TextBlock& block, const char* begin, const char* end);
  bool trim(TextBlock& block);
  void open_file();
  void begin_file(TextBlock& block);
  void find_layout(TextBlock& block);

  const Schema& schema_;
  const std::vector<std::string> paths_;
  const RowPass pass_;
  const Limits limits_;
  const std::shared_ptr<FileRecords> records_;
  const bool has_columns_;  // the format: a line of each file says which
  const QuotedLines quotes_;
  std::atomic<std::int64_t> bytes_read_{0}, rows_read_{0};
  Interruption interruption_;

  std::size_t next_path_ = 0;
  std::unique_ptr<ByteStream> stream_;  // of the current file; null: open the next one
  std::shared_ptr<const std::string> file_;
  std::shared_ptr<const ColumnMap> layout_;  // null until a line of the file decides
  bool at_end_ = false;                      // of the file: all of it is in blocks and carry_
  std::vector<char> carry_;                  // read, and to begin the next block, as it was read
  std::int64_t next_row_ = 0;
  std::int64_t next_file_line_ = 1;
};

/// Number of '\n' in [begin, end).
std::int64_t count_newlines(const char* begin, const char* end);

}  // namespace satrap::data
