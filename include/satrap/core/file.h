#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/core/hash.h"

namespace satrap {

// Files and folders. Errors name the path and the system's reason: Error(kIo) unless stated
// otherwise. One object is for one thread at a time; free functions are thread-safe.

/// The path without the folder at its beginning, if it is in that.
std::string without_folder(const std::string& path, const std::string& folder);

/// Whether a path means another file in another folder: it is not absolute, no URL, not "-", and
/// nothing that a shell would have to resolve.
bool is_relative_path(const std::string& path);

/// A path as people read it: without the working directory at its beginning.
std::string shown_path(const std::string& path);

/// Writes one file from its beginning, buffered, and computes its checksum.
///
/// write() or finish() reports a full disk, a lost mount and the like: once finish() returns, the
/// content is on disk. (The name of a new file is on disk only after fsync_directory.)
class FileWriter {
 public:
  explicit FileWriter(std::string path);  // creates the file, or empties it
  ~FileWriter();                          // without finish(): closes the incomplete file
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  /// Syncs everything to disk (fsync) and closes the file. Nothing may be written afterwards.
  void finish();

  std::int64_t bytes_written() const { return bytes_written_; }

  /// XXH3 of everything written so far: the hash_bytes of the whole, whatever the pieces.
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

/// Reads one file from beginning to end, buffered, and computes its checksum.
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
  std::size_t buffer_begin_ = 0;  // first byte of the buffer that has not been returned
  std::size_t buffer_end_ = 0;
  RunningHash hash_;
};

/// The whole content of a file that fits into memory.
std::string read_file(const std::string& path);

/// Replaces the content of a file atomically: after a crash it has either the old content or the
/// new one. The new content is on disk when this returns.
void write_file_atomic(const std::string& path, std::string_view content);

/// Renames a file or folder within its file system and syncs the new name to disk. Replaces a file
/// or an empty folder of the name `to`.
void rename_atomic(const std::string& from, const std::string& to);

/// As rename_atomic for a folder, which may also replace a non-empty one; that one is then removed.
/// At every moment one of the two has the name `to`.
void replace_directory(const std::string& from, const std::string& to);

/// Syncs the names in a folder (files created, renamed, removed) to disk.
void fsync_directory(const std::string& path);

/// Removes a file, or a folder with everything in it. Not an error if there is none.
void remove_all(const std::string& path);

/// Names of the entries of a folder, sorted, without "." and "..".
std::vector<std::string> list_directory(const std::string& path);

/// Creates a folder and its parents if missing. Also throws if the folder cannot be written to.
void ensure_directory(const std::string& path);

/// Whether a file can be created in the folder `path` now; tries to create one.
bool is_writable_directory(const std::string& path);

/// Bytes a user may still write to the file system that holds `path`, or would hold it.
std::int64_t free_bytes(const std::string& path);

}  // namespace satrap
