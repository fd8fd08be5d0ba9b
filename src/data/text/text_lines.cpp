#include "satrap/data/text_lines.h"

#include <cstring>

#include "satrap/core/error.h"
#include "src/data/files/byte_stream.h"

namespace satrap::data {
namespace {

constexpr std::size_t kFirstBytes = std::size_t{64} << 10;
constexpr std::size_t kLargestLine = std::size_t{16} << 20;

}  // namespace

TextLines::TextLines(const std::string& path)
    : path_(path),
      interruption_(std::make_unique<Interruption>(nullptr)),
      stream_(open_byte_stream(path, bytes_read_, *interruption_)),
      buffer_(kFirstBytes, '\0') {}

TextLines::~TextLines() = default;

/// Reads more behind what is left; false at the end of the file.
bool TextLines::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    if (buffer_.size() >= kLargestLine) {
      throw Error(ErrorCode::kInvalidData,
                  concat(path_, ":", line_number_ + 1, ": the line is longer than 16 MiB"));
    }
    buffer_.resize(2 * buffer_.size());
  }
  const std::size_t read = stream_->read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += read;
  return read > 0;
}

bool TextLines::next(std::string_view& line) {
  std::size_t searched = 0;
  while (true) {
    const char* const from = buffer_.data() + begin_;
    const auto* const found =
        static_cast<const char*>(std::memchr(from + searched, '\n', end_ - begin_ - searched));
    const std::size_t length =
        found != nullptr ? static_cast<std::size_t>(found - from) : end_ - begin_;
    if (found == nullptr) {
      searched = length;
      if (fill()) continue;
      if (length == 0) return false;
    }
    line = std::string_view(buffer_.data() + begin_, length);
    begin_ += length + (found != nullptr ? 1 : 0);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++line_number_;
    return true;
  }
}

}  // namespace satrap::data
