#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/core/hash.h"

namespace satrap {

// Files and folders with errors that name the path and what the system said about it: Error(kIo)
// unless stated otherwise. Nothing here is thread-safe on one object; free functions are.

/// Writes one file from its beginning, buffered, and sums it up on the way.
///
/// A full disk, a lost mount and the like show up in write() or finish(), never go unnoticed: what
/// finish() has returned from is on the disk. (The name of a new file is only after
/// fsync_directory.)
class FileWriter {
 public:
  explicit FileWriter(std::string path);  // creates the file, or empties it
  ~FileWriter();                          // without finish(): closes it, as far as it got
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  /// Brings everything to the disk (fsync) and closes. Nothing may be written afterwards.
  void finish();

  std::int64_t bytes_written() const { return bytes_written_; }

  /// XXH3 of everything written so far; the hash_bytes of the whole, however it was cut.
  std::uint64_t checksum() const { return hash_.digest(); }

 private:
  void flush();
  void write_through(std::span<const std::byte> bytes);
  [[noreturn]] void fail(const char* what) const;

  const std::string path_;
  int fd_ = -1;
  std::int64_t bytes_written_ = 0;
  std::vector<std::byte> buffer_;
  RunningHash hash_;
};

/// Reads one file from beginning to end, buffered, and sums it up on the way.
class FileReader {
 public:
  explicit FileReader(std::string path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  /// Fills `bytes`. Throws Error(kCorrupt) if the file ends before that.
  void read(std::span<std::byte> bytes);

  std::int64_t size() const { return size_; }  // of the file, when it was opened
  std::int64_t bytes_read() const { return bytes_read_; }
  bool at_end() const { return bytes_read_ == size_; }

  /// XXH3 of everything read so far.
  std::uint64_t checksum() const { return hash_.digest(); }

 private:
  std::size_t read_some(std::span<std::byte> bytes);  // 0: the file has ended

  const std::string path_;
  int fd_ = -1;
  std::int64_t size_ = 0;
  std::int64_t bytes_read_ = 0;
  std::vector<std::byte> buffer_;
  std::size_t buffer_begin_ = 0;  // what of the buffer is still to be handed out
  std::size_t buffer_end_ = 0;
  RunningHash hash_;
};

/// The whole content of a file that fits into memory.
std::string read_file(const std::string& path);

/// Replaces the content of a file as one event: after a crash at any moment it has the old content
/// or the new one. The new one is on the disk when this returns.
void write_file_atomic(const std::string& path, std::string_view content);

/// Renames a file or folder within its file system and brings the new name to the disk. A file, or
/// an empty folder, of the name `to` is replaced.
void rename_atomic(const std::string& from, const std::string& to);

/// As rename_atomic for a folder that may also take the place of a full one, which is then removed.
/// At every moment one of the two has the name `to`.
void replace_directory(const std::string& from, const std::string& to);

/// Brings the names in a folder (files created, renamed, removed) to the disk.
void fsync_directory(const std::string& path);

/// Removes a file, or a folder with everything in it. Not an error if there is none.
void remove_all(const std::string& path);

/// Names of what is in a folder, sorted, without "." and "..".
std::vector<std::string> list_directory(const std::string& path);

/// Makes a folder, and those above it, unless it is there. Throws also if it cannot be written to.
void ensure_directory(const std::string& path);

/// Whether a file can be created in the folder `path` now; tries it.
bool is_writable_directory(const std::string& path);

/// Bytes a user may still write to the file system that holds `path`, or would hold it.
std::int64_t free_bytes(const std::string& path);

}  // namespace satrap
