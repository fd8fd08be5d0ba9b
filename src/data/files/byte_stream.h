#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace satrap::data {

/// Ends the reading of a pipe before its end: cancel(), or the stop of the whole job, which a
/// reader of a file does not notice. Thread-safe.
class Interruption {
 public:
  /// `stop` may be null.
  explicit Interruption(const std::atomic<bool>* stop) : stop_(stop) {}

  void cancel() { cancelled_ = true; }

  /// Whether cancel() was called, or a stop has ended the reading of a pipe.
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  /// Asked by the reader of a pipe before it waits.
  bool ends_pipe() {
    if (stop_ != nullptr && stop_->load()) cancelled_ = true;
    return is_cancelled();
  }

 private:
  const std::atomic<bool>* const stop_;
  std::atomic<bool> cancelled_{false};
};

/// The bytes of one file (or of standard input), decompressed. One thread at a time, except for the
/// counters.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  /// Reads up to `size` bytes into `out`; blocks for at least one. 0: the end, or cancelled. Throws
  /// Error(kIo) if reading fails and Error(kInvalidData) if compressed data are damaged or end too
  /// early.
  virtual std::size_t read(char* out, std::size_t size) = 0;
};

/// Opens `path` ("-": standard input). The first bytes decide between plain, gzip (RFC 1952, any
/// number of members) and zstd (any number of frames). Refuses a name in .gz or .zst with other
/// content, and a few formats that are certainly not text (Parquet, bzip2, xz). A pipe is waited
/// for, also for its writer; `interruption` ends that within 100 ms, here and in read(). Adds the
/// bytes read from disk to `bytes_read`. Both must outlive the stream. Throws Error(kIo) for a
/// missing or unreadable file, a directory, an empty file; Error(kInvalidData) for a wrong format.
std::unique_ptr<ByteStream> open_byte_stream(const std::string& path,
                                             std::atomic<std::int64_t>& bytes_read,
                                             Interruption& interruption);

}  // namespace satrap::data
