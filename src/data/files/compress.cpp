#include "satrap/data/compress.h"

#include <limits>

#include <zlib.h>
#include <zstd.h>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

constexpr int kGzipLevel = 1, kZstdLevel = 1;
constexpr int kGzipWindowBits = 15 + 16;  // 16: with the header and trailer of gzip
constexpr int kMemoryLevel = 9;

void compress_gzip(std::string_view text, std::string& out) {
  SATRAP_CHECK(text.size() <= std::numeric_limits<uInt>::max() / 2, "piece of ", text.size(),
               " bytes");
  z_stream stream{};
  int status = deflateInit2(&stream, kGzipLevel, Z_DEFLATED, kGzipWindowBits, kMemoryLevel,
                            Z_DEFAULT_STRATEGY);
  SATRAP_CHECK(status == Z_OK, "deflateInit2 returned ", status);
  out.resize(deflateBound(&stream, static_cast<uLong>(text.size())));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  SATRAP_CHECK(status == Z_STREAM_END, "deflate returned ", status);
}

void compress_zstd(std::string_view text, std::string& out) {
  out.resize(ZSTD_compressBound(text.size()));
  const std::size_t size =
      ZSTD_compress(out.data(), out.size(), text.data(), text.size(), kZstdLevel);
  SATRAP_CHECK(ZSTD_isError(size) == 0, "zstd: ", ZSTD_getErrorName(size));
  out.resize(size);
}

}  // namespace

Compression compression_of(std::string_view path) {
  if (path.ends_with(".gz")) return Compression::kGzip;
  if (path.ends_with(".zst")) return Compression::kZstd;
  return Compression::kNone;
}

void compress(Compression compression, std::string_view text, std::string& out) {
  switch (compression) {
    case Compression::kNone:
      out.assign(text);
      break;
    case Compression::kGzip:
      compress_gzip(text, out);
      break;
    case Compression::kZstd:
      compress_zstd(text, out);
      break;
  }
}

}  // namespace satrap::data
