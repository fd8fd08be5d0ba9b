#include "satrap/data/output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/printable_lines.h"

namespace satrap::data {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what) {
  const int error = errno;
  const std::string name = path == "-" ? "standard output" : path;
  const ErrorCode code = path == "-" && error == EPIPE ? ErrorCode::kClosedPipe : ErrorCode::kIo;
  throw Error(code, concat(name, ": ", what, ": ", std::strerror(error)));
}

/// True for a path that a rename would destroy instead of filling it.
bool is_pipe_or_device(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  return std::filesystem::exists(status) && std::filesystem::is_other(status);
}

}  // namespace

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code unknown;
  if (a == "-" || b == "-" || is_pipe_or_device(a)) return false;
  return std::filesystem::equivalent(a, b, unknown) ||
         std::filesystem::weakly_canonical(a, unknown) ==
             std::filesystem::weakly_canonical(b, unknown);
}

OutputFile::OutputFile(const std::string& path)
    : path_(path), temporary_path_(concat(path, ".", ::getpid(), ".tmp")) {
  if (path == "-") {
    stream_.reset(stdout);
  } else if (is_pipe_or_device(path)) {
    stream_.reset(std::fopen(path.c_str(), "wb"));
    if (!stream_) fail(path_, "cannot be opened");
  } else {
    if (std::filesystem::is_directory(path)) {
      errno = EISDIR;
      fail(path_, "cannot be written");
    }
    file_.emplace(temporary_path_);
  }
}

OutputFile::~OutputFile() {
  if (!file_) return;
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(temporary_path_, ignored);
}

void OutputFile::CloseStream::operator()(std::FILE* stream) const {
  if (stream != stdout) std::fclose(stream);
}

void OutputFile::write(std::string_view bytes) {
  if (file_) {
    file_->write(bytes);
  } else {
    const std::string shown = is_terminal(stream_.get()) ? printable_lines(bytes) : "";
    const std::string_view written = shown.empty() ? bytes : shown;
    if (std::fwrite(written.data(), 1, written.size(), stream_.get()) != written.size()) {
      fail(path_, "cannot be written");
    }
  }
  bytes_written_ += std::ssize(bytes);
}

void OutputFile::finish() {
  if (!file_) {
    if (std::fflush(stream_.get()) != 0) fail(path_, "cannot be written");
    return;
  }
  file_->finish();
  rename_atomic(temporary_path_, path_);
  file_.reset();
}

}  // namespace satrap::data
