#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "satrap/core/file.h"

namespace satrap::data {

/// A file that has its name only once it is complete: written under a temporary name beside it,
/// then renamed. Standard output ("-"), pipes and devices are written to as they are. All functions
/// throw Error(kIo).
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();  // without finish(): nothing stays behind
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
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
