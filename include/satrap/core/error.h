#pragma once

#include <cstddef>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace satrap {

/// The kind of error. It decides the exit status of the programs (see exit_status).
enum class ErrorCode {
  kInternal,       // a bug in satrap: a broken precondition or invariant
  kInvalidConfig,  // the configuration or the command line
  kInvalidData,    // the content of the training data
  kIo,             // files, disks, pipes
  kClosedPipe,     // nobody reads standard output any more: a program then ends without a word
  kCorrupt,        // a checkpoint or file whose content does not match its checksum or format
  kDiverged,       // training produced too many non-finite values
  kUnavailable,    // something this build or machine does not have
};

/// NUL bytes, at which what() would end, are shown as \x00.
inline std::string with_visible_nuls(std::string text) {
  for (std::size_t at = 0; (at = text.find('\0', at)) != std::string::npos;) {
    text.replace(at, 1, "\\x00");
  }
  return text;
}

/// The exception of satrap. Its message names the thing, the rule and the value, and file:line of
/// the user's input if there is one; the user sees it unchanged.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message)
      : std::runtime_error(with_visible_nuls(message)), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

/// Exit status of a program that ends with `code`: 2 for a wrong configuration or command line, 141
/// for a closed pipe (as if SIGPIPE had ended it), 1 for everything else.
int exit_status(ErrorCode code);

/// Concatenates its arguments as text: concat("dim must be positive, got ", dim).
template <class... Args>
std::string concat(Args&&... args) {
  std::ostringstream out;
  static_cast<void>((out << ... << std::forward<Args>(args)));
  if (!out) throw std::bad_alloc();  // a stream keeps this to itself, and the rest of the text
  return std::move(out).str();
}

[[noreturn]] void check_failed(const char* file,
                               int line,
                               const char* condition,
                               const std::string& message);

}  // namespace satrap

/// Throws Error(kInternal) with file:line and the message made of the remaining arguments when the
/// condition is false. For broken preconditions and invariants, never for the user's input.
#define SATRAP_CHECK(condition, ...)                                                         \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      ::satrap::check_failed(__FILE__, __LINE__, #condition, ::satrap::concat(__VA_ARGS__)); \
    }                                                                                        \
  } while (false)
