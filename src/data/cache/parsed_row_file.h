#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "satrap/core/file.h"
#include "satrap/data/bad_rows.h"
#include "satrap/data/data_file.h"
#include "satrap/data/label_config.h"
#include "satrap/data/row_block.h"
#include "src/data/cache/parsed_row_space.h"

namespace satrap::data {

// A file with the parsed rows of one pass: blocks of rows, each with its bad rows, then an index of
// them and of the data files. Every part has a checksum. The index is written last.

/// A block in such a file. Its rows, good and bad, have numbers below `end_row`, and not below that
/// of the block before.
struct CachedBlock {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;      // of rows and bad rows
  std::int64_t bad_bytes = 0;  // of the bad rows, which come last
  std::int64_t num_rows = 0;   // good ones
  std::int64_t num_bad = 0;
  std::int64_t end_row = 0;
  std::uint64_t checksum = 0;
};

/// Writes the file beside its place, as `path`.part, and puts it there when it is complete. One
/// writer at a time has the place.
class ParsedRowWriter {
 public:
  /// Null if another writer, of any process, has the place. A part that a killed process has left
  /// is overwritten. `space`, which outlives the writer, is that of its folder. Throws Error(kIo).
  static std::unique_ptr<ParsedRowWriter> open(const std::string& path,
                                               const ParsedRowSpace& space);

  /// Removes the part, unless finish() has returned.
  ~ParsedRowWriter();
  ParsedRowWriter(const ParsedRowWriter&) = delete;
  ParsedRowWriter& operator=(const ParsedRowWriter&) = delete;

  /// The share of the rows, in (0, 1], that have been added once the next ones are: what the file
  /// will need follows from it.
  void set_share(double share) { share_ = share; }

  /// The next rows, perhaps none, and the bad rows up to them. Throws Error(kIo), as on a full
  /// disk, or without room.
  void add(const RowBlock& rows, const BadRows& bad);

  /// `files`: what the rows were parsed from. Replaces a file at `path`. Throws Error(kIo).
  void finish(const std::vector<DataFile>& files);

  std::int64_t num_rows() const { return num_rows_; }
  std::int64_t num_bytes() const { return num_bytes_; }

 private:
  ParsedRowWriter(std::string path, const ParsedRowSpace& space, int fd);
  void write(std::span<const std::byte> bytes);

  const std::string path_;
  const ParsedRowSpace& space_;
  const int fd_;
  bool is_finished_ = false;
  double share_ = 1.0;
  std::int64_t num_rows_ = 0, num_bytes_ = 0;
  std::int64_t reserved_ = 0;  // bytes, of which it has written num_bytes_
  std::vector<CachedBlock> blocks_;
  std::vector<std::byte> buffer_;
};

/// Reads a file of cached rows at any place. One thread at a time.
class ParsedRowFile {
 public:
  /// Reads the index. Nobody makes room by removing the file while the object lives. Throws
  /// Error(kIo) if there is no file, Error(kCorrupt) if it is damaged or of another version of
  /// satrap.
  explicit ParsedRowFile(const std::string& path);
  ~ParsedRowFile();
  ParsedRowFile(const ParsedRowFile&) = delete;
  ParsedRowFile& operator=(const ParsedRowFile&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<DataFile>& files() const { return files_; }
  const std::vector<CachedBlock>& blocks() const { return blocks_; }
  std::int64_t num_rows() const;
  std::int64_t num_bytes() const { return num_bytes_; }

  /// Counts as the last use, as far as this process may say so.
  void mark_used();

  /// Replaces `rows`, which has the columns of those that were written, and `bad`; `labels` as in
  /// read_block. Throws Error(kIo | kCorrupt).
  void read(std::size_t block,
            std::span<const NamedLabelConfig> labels,
            RowBlock& rows,
            BadRows& bad);

 private:
  void read_at(std::int64_t offset, std::size_t size);
  void read_index();
  void check_blocks(std::int64_t bytes) const;

  const std::string path_;
  int fd_ = -1;
  std::int64_t num_bytes_ = 0;
  std::vector<DataFile> files_;
  std::vector<CachedBlock> blocks_;
  std::vector<std::byte> buffer_;
};

}  // namespace satrap::data
