#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "satrap/core/file.h"

namespace satrap::data {

/// Whether two paths name one file, or would once it is written: the same path in other words, a
/// link. Standard output ("-"), pipes and devices are none.
bool is_same_file(const std::string& a, const std::string& b);

/// A file that gets its name only once it is complete: it is written under a temporary name in the
/// same folder, then renamed. Standard output ("-"), pipes and devices are written to directly, a
/// terminal as printable_lines() has it. All functions throw Error(kIo).
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();  // without finish(): leaves no file
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);  // of text: whole characters
  void finish();

  std::int64_t bytes_written() const { return bytes_written_; }

 private:
  struct CloseStream {
    void operator()(std::FILE* stream) const;
  };

  const std::string path_;
  const std::string temporary_path_;
  std::optional<FileWriter> file_;                  // either this
  std::unique_ptr<std::FILE, CloseStream> stream_;  // or this
  std::int64_t bytes_written_ = 0;
};

}  // namespace satrap::data
