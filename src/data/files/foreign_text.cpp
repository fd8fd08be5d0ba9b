#include "src/data/files/foreign_text.h"

#include <algorithm>

#include "satrap/core/text.h"

namespace satrap::data {
namespace {

/// "3:0.5" of libsvm, or "2:17:1" of libffm.
bool is_indexed_value(std::string_view word) {
  const auto colons = std::ranges::count(word, ':');
  const std::size_t last = word.rfind(':');
  return (colons == 1 || colons == 2) && parse_number<double>(word.substr(last + 1)).has_value() &&
         parse_number<std::int64_t>(word.substr(0, word.find(':'))).has_value();
}

/// A number, and then at least one value with its index.
bool is_libsvm(std::string_view line) {
  bool is_first = true, has_value = false;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    if (word.empty()) continue;
    if (is_first ? !parse_number<double>(word) : !is_indexed_value(word)) return false;
    has_value = has_value || !is_first;
    is_first = false;
  }
  return has_value;
}

}  // namespace

bool is_json_object(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.starts_with("{\"") && line.ends_with('}');
}

std::string foreign_text(std::string_view line, bool is_header, bool is_file) {
  if (is_json_object(line)) {
    const std::string text = "is JSON, an object per line; write data.format: json";
    return is_file ? text + ", or name it .jsonl" : text;
  }
  if (line.starts_with("ORC")) {
    return "is an ORC file, which is not read; pyarrow.orc.read_table and "
           "pyarrow.parquet.write_table make Parquet of it";
  }
  constexpr std::string_view kZlib = "\x78";
  if (line.starts_with(kZlib) && line.size() > 1 &&
      std::string_view("\x01\x5E\x9C\xDA").find(line[1]) != std::string_view::npos) {
    return "looks like data of zlib without a header of gzip: unpack it first (Python's "
           "zlib.decompress)";
  }
  if (line.substr(0, 64).find('\0') != std::string_view::npos) {
    return "has bytes that are 0, as UTF-16 has: iconv -f utf-16le -t utf-8 makes text of it";
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (std::ranges::count(line, '\r') > 1) {
    return "has lines that end with CR alone: tr '\\r' '\\n' makes text of it";
  }
  if (is_header && line.starts_with('[') && (line.size() == 1 || line[1] == '{')) {
    return "is a JSON array: jq -c '.[]' writes its elements, one per line";
  }
  if (is_header && is_libsvm(line)) {
    return "looks like libsvm or libffm; write data.format: libsvm or libffm, or name it so";
  }
  return "";
}

}  // namespace satrap::data
