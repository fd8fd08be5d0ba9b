#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace satrap::data {

class ByteStream;
class Interruption;

/// The lines of one text file, plain, gzip or zstd, from its beginning. For programs that pass a
/// file through; training reads blocks of lines instead. One thread at a time.
class TextLines {
 public:
  /// Throws Error(kIo) for a missing, unreadable or empty file, Error(kInvalidData) for one that is
  /// no text.
  explicit TextLines(const std::string& path);
  ~TextLines();
  TextLines(const TextLines&) = delete;
  TextLines& operator=(const TextLines&) = delete;

  /// The next line, without "\n" or "\r\n", until the next call; false at the end. Throws as
  /// ByteStream::read, and Error(kInvalidData) for a line of more than 16 MiB.
  bool next(std::string_view& line);

  /// The number of the last line, from 1.
  std::int64_t line_number() const { return line_number_; }

  /// As they are on the disk.
  std::int64_t bytes_read() const { return bytes_read_.load(std::memory_order_relaxed); }

 private:
  bool fill();

  const std::string path_;
  std::atomic<std::int64_t> bytes_read_{0};
  std::unique_ptr<Interruption> interruption_;
  std::unique_ptr<ByteStream> stream_;
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what has not been returned
  std::int64_t line_number_ = 0;
};

}  // namespace satrap::data
