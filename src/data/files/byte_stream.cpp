#include "src/data/files/byte_stream.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "satrap/core/error.h"
#include "src/data/files/foreign_text.h"
#include "src/data/files/raw_input.h"

namespace satrap::data {
namespace {

constexpr std::size_t kInputBytes = std::size_t{256} << 10;

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(std::unique_ptr<RawInput> file) : file_(std::move(file)) {}
  std::size_t read(char* out, std::size_t size) override { return file_->read(out, size); }

 private:
  std::unique_ptr<RawInput> file_;
};

class GzipStream : public ByteStream {
 public:
  explicit GzipStream(std::unique_ptr<RawInput> file)
      : file_(std::move(file)), input_(kInputBytes) {
    SATRAP_CHECK(inflateInit2(&zlib_, 15 + 16) == Z_OK, "zlib cannot be initialised");
  }
  ~GzipStream() override { inflateEnd(&zlib_); }

  std::size_t read(char* out, std::size_t size) override {
    zlib_.next_out = reinterpret_cast<Bytef*>(out);
    zlib_.avail_out = static_cast<uInt>(std::min(size, kInputBytes));
    const std::size_t wanted = zlib_.avail_out;
    while (zlib_.avail_out == wanted) {
      if (zlib_.avail_in == 0 && !refill()) {
        if (!member_ended_ && !file_->is_cancelled()) {
          throw Error(ErrorCode::kInvalidData,
                      concat("'", file_->name(), "': the gzip data end before their end mark; the ",
                             "file is truncated"));
        }
        return 0;
      }
      if (member_ended_ && !start_next_member()) continue;
      const int status = inflate(&zlib_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        member_ended_ = true;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        throw Error(ErrorCode::kInvalidData,
                    concat("'", file_->name(), "': damaged gzip data: ",
                           zlib_.msg != nullptr ? zlib_.msg : "unknown error"));
      }
    }
    return wanted - zlib_.avail_out;
  }

 private:
  bool refill() {
    const std::size_t n = file_->read(input_.data(), input_.size());
    zlib_.next_in = reinterpret_cast<Bytef*>(input_.data());
    zlib_.avail_in = static_cast<uInt>(n);
    return n > 0;
  }

  // Between members there may be zero padding (tape blocks), which gzip ignores too. Returns false
  // if the input at hand was all padding.
  bool start_next_member() {
    while (zlib_.avail_in > 0 && *zlib_.next_in == 0) {
      ++zlib_.next_in;
      --zlib_.avail_in;
    }
    if (zlib_.avail_in == 0) return false;
    SATRAP_CHECK(inflateReset(&zlib_) == Z_OK, "zlib cannot be reset");
    member_ended_ = false;
    return true;
  }

  std::unique_ptr<RawInput> file_;
  std::vector<char> input_;
  z_stream zlib_{};
  bool member_ended_ = false;
};

class ZstdStream : public ByteStream {
 public:
  explicit ZstdStream(std::unique_ptr<RawInput> file)
      : file_(std::move(file)), input_(ZSTD_DStreamInSize()), zstd_(ZSTD_createDStream()) {
    SATRAP_CHECK(zstd_ != nullptr, "zstd cannot be initialised");
    // Also accept frames of `zstd --long=31`.
    ZSTD_DCtx_setParameter(zstd_, ZSTD_d_windowLogMax, 31);
  }
  ~ZstdStream() override { ZSTD_freeDStream(zstd_); }

  std::size_t read(char* out, std::size_t size) override {
    ZSTD_outBuffer output{out, size, 0};
    while (output.pos == 0) {
      // After a full output buffer zstd may have more output, without needing input.
      if (at_hand_.pos == at_hand_.size && !more_inside_) {
        at_hand_ = {input_.data(), file_->read(input_.data(), input_.size()), 0};
        if (at_hand_.size == 0) {
          if (!frame_ended_ && !file_->is_cancelled()) {
            throw Error(ErrorCode::kInvalidData,
                        concat("'", file_->name(), "': the zstd data end within a frame; the file ",
                               "is truncated"));
          }
          return 0;
        }
      }
      const std::size_t status = ZSTD_decompressStream(zstd_, &output, &at_hand_);
      if (ZSTD_isError(status) != 0U) {
        if (ZSTD_getErrorCode(status) == ZSTD_error_memory_allocation) throw std::bad_alloc();
        throw Error(
            ErrorCode::kInvalidData,
            concat("'", file_->name(), "': damaged zstd data: ", ZSTD_getErrorName(status)));
      }
      frame_ended_ = status == 0;
      more_inside_ = output.pos == output.size && !frame_ended_;
    }
    return output.pos;
  }

 private:
  std::unique_ptr<RawInput> file_;
  std::vector<char> input_;
  ZSTD_DStream* zstd_;
  ZSTD_inBuffer at_hand_{nullptr, 0, 0};
  bool frame_ended_ = false;
  bool more_inside_ = false;
};

bool starts_with(std::string_view text, std::string_view magic) {
  return text.substr(0, magic.size()) == magic;
}
bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

/// Name of a format that is certainly not text, or nullptr.
const char* foreign_format(std::string_view head) {
  if (starts_with(head, "BZh")) return "a bzip2";
  if (starts_with(head,
                  "\xFD"
                  "7zXZ")) {
    return "an xz";
  }
  if (starts_with(head, "PK\x03\x04")) return "a zip";
  if (starts_with(head, "\xFF\xFE") || starts_with(head, "\xFE\xFF")) return "a UTF-16";
  return nullptr;
}

}  // namespace

std::unique_ptr<ByteStream> open_byte_stream(const std::string& path,
                                             std::atomic<std::int64_t>& bytes_read,
                                             Interruption& interruption) {
  std::unique_ptr<RawInput> file = open_raw_input(path, bytes_read, interruption);
  const std::string_view head = file->peek();
  if (head.empty() && !interruption.is_cancelled()) {
    throw Error(ErrorCode::kIo, concat("'", file->name(), "' is empty"));
  }
  const bool gzip = starts_with(head, "\x1F\x8B");
  const bool zstd = starts_with(head, "\x28\xB5\x2F\xFD") ||
                    // a skippable frame, as pzstd writes first: 0x184D2A5?
                    (head.size() >= 4 && (head[0] & '\xF0') == '\x50' &&
                     head.substr(1, 3) == std::string_view("\x2A\x4D\x18"));
  if (ends_with(path, ".gz") && !gzip) {
    throw Error(ErrorCode::kInvalidData,
                concat("'", path, "' is named .gz but does not hold gzip data"));
  }
  if (ends_with(path, ".zst") && !zstd) {
    throw Error(ErrorCode::kInvalidData,
                concat("'", path, "' is named .zst but does not hold zstd data"));
  }
  for (const bool is_arrow : {false, true}) {
    if (!starts_with(head, is_arrow ? "ARROW1" : "PAR1")) continue;
    const std::string name = is_arrow ? "Arrow" : "Parquet";
    const std::string format = is_arrow ? "arrow" : "parquet";
    throw Error(
        ErrorCode::kInvalidData,
        concat("'", file->name(), is_arrow ? "' is an Arrow" : "' is a Parquet",
               " file, and is read as text: ",
               path == "-" ? name + " is read from files alone"
                           : concat("write data.format: ", format, ", or name it .", format)));
  }
  if (const char* format = foreign_format(head)) {
    throw Error(
        ErrorCode::kInvalidData,
        concat("'", file->name(), "' is ", format,
               " file; what can be read is text, plain or packed by gzip or zstd; ", kPipeIt));
  }
  if (gzip) return std::make_unique<GzipStream>(std::move(file));
  if (zstd) return std::make_unique<ZstdStream>(std::move(file));
  return std::make_unique<PlainStream>(std::move(file));
}

}  // namespace satrap::data
