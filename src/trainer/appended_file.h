#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace satrap::trainer {

/// A file that grows by pieces, such as lines, each of which is there as a whole or not at all.
/// What cannot be written, on a full disk, waits and goes before the next piece: a warning says so,
/// once until nothing waits. One thread.
class AppendedFile {
 public:
  /// Appends to the file, which is created if it is missing. Throws Error(kIo).
  explicit AppendedFile(std::string path);
  ~AppendedFile();  // what still waits is lost
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  /// Throws Error(kIo) if 16 MiB wait.
  void append(std::string_view piece);

  /// Throws Error(kIo) if something waits and still cannot be written.
  void finish();

  const std::string& path() const { return path_; }
  const std::string& waiting() const { return waiting_; }

 private:
  bool write_waiting();
  [[noreturn]] void fail(int reason) const;

  const std::string path_;
  const int fd_;
  std::int64_t size_ = 0;  // of the whole pieces
  std::string waiting_;
  bool is_told_ = false;
};

}  // namespace satrap::trainer
