#pragma once

#include <string>
#include <string_view>

namespace satrap::data {

enum class Compression { kNone, kGzip, kZstd };

/// By the ending of a file's name: .gz, .zst, anything else.
Compression compression_of(std::string_view path);

/// Replaces `out` by `text` as one whole gzip member or zstd frame (or unchanged), at a fast level.
/// Members and frames written one after the other are a valid file.
void compress(Compression compression, std::string_view text, std::string& out);

}  // namespace satrap::data
