#include "src/data/text/line_cutter.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "src/data/files/foreign_text.h"
#include "src/data/text/column_map.h"

namespace satrap::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

void TextBlock::reserve(std::int64_t bytes, std::int64_t kept) {
  if (bytes <= capacity) return;
  auto larger = std::make_unique_for_overwrite<char[]>(static_cast<std::size_t>(bytes + kPadding));
  if (kept > 0) std::memcpy(larger.get(), buffer.get(), static_cast<std::size_t>(kept));
  // The bytes after the text are read eight at a time, but never used.
  std::memset(larger.get() + kept, 0, static_cast<std::size_t>(bytes + kPadding - kept));
  buffer = std::move(larger);
  capacity = bytes;
}

const char* TextBlock::keep_lines(std::int64_t lines) {
  num_lines = lines;
  if (!columns.empty()) return text_end();
  const char* kept_end = text_begin();
  for (std::int64_t i = 0; i < lines; ++i) kept_end = std::find(kept_end, text_end(), '\n') + 1;
  end = kept_end - buffer.get();
  return kept_end;
}

std::int64_t TextBlock::num_stand_ins(const char* until) const {
  return stand_in == 0 ? 0 : std::count(text_begin(), until, stand_in);
}

void TextBlock::restore_line_ends(char* from, char* to) const {
  if (stand_in != 0) std::replace(from, to, stand_in, '\n');
}

std::string TextBlock::place_of(std::int64_t line) const {
  if (messages.empty()) {
    const char* row = text_begin();
    for (std::int64_t i = 0; stand_in != 0 && i < line; ++i) {
      row = std::find(row, text_end(), '\n') + 1;
    }
    return concat(*file, ":", file_line + line + num_stand_ins(row));
  }
  const Message& message = message_of(line);
  return concat(*file, ", offset ", message.offset, ", line ", line - message.first_line + 1);
}

std::uint64_t TextBlock::position_of(std::int64_t line) const {
  if (messages.empty()) return static_cast<std::uint64_t>(first_row + line);
  const Message& message = message_of(line);
  const auto number = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  return hash64(number(partition), number(message.offset), number(line - message.first_line));
}

const TextBlock::Message& TextBlock::message_of(std::int64_t line) const {
  return *std::prev(std::ranges::upper_bound(messages, line, {}, &Message::first_line));
}

std::int64_t count_newlines(const char* begin, const char* end) {
  // 64 byte-sized counters in parallel, which suits vector instructions, for at most 255 rounds.
  constexpr std::ptrdiff_t kWidth = 64;
  std::int64_t total = 0;
  while (end - begin >= kWidth) {
    const std::ptrdiff_t rounds = std::min<std::ptrdiff_t>((end - begin) / kWidth, 255);
    std::uint8_t counts[kWidth] = {};
    for (std::ptrdiff_t i = 0; i < rounds; ++i, begin += kWidth) {
      for (std::ptrdiff_t j = 0; j < kWidth; ++j) {
        counts[j] = static_cast<std::uint8_t>(counts[j] + (begin[j] == '\n' ? 1 : 0));
      }
    }
    for (const std::uint8_t count : counts) total += count;
  }
  return total + std::count(begin, end, '\n');
}

LineCutter::LineCutter(const Schema& schema,
                       std::vector<std::string> paths,
                       const RowPass& pass,
                       const Limits& limits,
                       std::shared_ptr<FileRecords> records,
                       FileFormat format)
    : schema_(schema),
      paths_(std::move(paths)),
      pass_(pass),
      limits_(limits),
      records_(std::move(records)),
      has_columns_(format == FileFormat::kDelimited),
      quotes_(schema.text),
      interruption_(pass.stop) {}

bool LineCutter::next(TextBlock& block) {
  while (cut(block)) {
    if (has_rows_of(pass_, block)) return true;
  }
  return false;
}

bool LineCutter::cut(TextBlock& block) {
  if (interruption_.is_cancelled() || (pass_.max_rows > 0 && next_row_ >= pass_.max_rows))
    return false;
  if (!stream_) {
    if (next_path_ == paths_.size()) return false;
    open_file();
  }
  const std::int64_t size = fill(block);
  if (interruption_.is_cancelled()) return false;

  carry(block, block.buffer.get() + block.end, block.buffer.get() + size);
  if (next_file_line_ == 1) begin_file(block);
  if (has_columns_ && !layout_ && block.begin < block.end) find_layout(block);
  block.file = file_;
  block.layout = layout_;
  block.first_row = next_row_;
  block.file_line = next_file_line_;
  block.num_lines = count_newlines(block.text_begin(), block.text_end());
  const bool ends_file = !trim(block) && at_end_;
  next_row_ += block.num_lines;
  rows_read_.store(next_row_, std::memory_order_relaxed);
  next_file_line_ += block.num_lines + block.num_stand_ins(block.text_end());
  if (ends_file) {
    stream_.reset();
    if (records_) records_->end(next_path_ - 1, next_row_);
  }
  return true;
}

/// Fills the block until it is full and has whole rows, which end at block.end; one byte is kept
/// for a last '\n'. Returns how much there is.
std::int64_t LineCutter::fill(TextBlock& block) {
  std::int64_t size = std::ssize(carry_);
  block.reserve(limits_.block_bytes, 0);
  block.reserve(size + 1, 0);
  if (size > 0) std::memcpy(block.buffer.get(), carry_.data(), carry_.size());
  carry_.clear();
  block.begin = 0;
  std::int64_t searched = 0;  // no row ends before
  while (true) {
    while (size < block.capacity - 1 && !at_end_) {
      const std::size_t n = stream_->read(block.buffer.get() + size,
                                          static_cast<std::size_t>(block.capacity - 1 - size));
      at_end_ = n == 0;
      size += static_cast<std::int64_t>(n);
    }
    if (at_end_ && size > 0 && block.buffer[static_cast<std::size_t>(size - 1)] != '\n') {
      block.buffer[static_cast<std::size_t>(size++)] = '\n';
    }
    block.end = find_end(block, size, searched);
    if (block.end > 0 || at_end_ || interruption_.is_cancelled()) return size;
    searched = size;
    if (size >= limits_.line_bytes) {
      throw Error(ErrorCode::kInvalidData,
                  concat(*file_, ":", next_file_line_, ": no end of line in ", size,
                         " bytes; is this a text file?"));
    }
    block.reserve(block.capacity * 2, size);
  }
}

/// The end of the last whole row; 0: there is none yet.
std::int64_t LineCutter::find_end(TextBlock& block, std::int64_t size, std::int64_t searched) {
  char* const begin = block.buffer.get();
  block.stand_in = 0;
  if (!has_columns_) {
    const void* const last =
        memrchr(begin + searched, '\n', static_cast<std::size_t>(size - searched));
    return last == nullptr ? 0 : static_cast<const char*>(last) + 1 - begin;
  }
  const auto mark = static_cast<std::int64_t>(
      std::string_view(begin, static_cast<std::size_t>(size)).starts_with(kByteOrderMark) &&
              next_file_line_ == 1
          ? kByteOrderMark.size()
          : 0);
  const std::int64_t end =
      quotes_.join(begin + mark, begin + mark, begin + size, at_end_, block.stand_in);
  if (end > 0) return end + mark;
  block.restore_line_ends(begin, begin + size);
  return 0;
}

/// Leaves these bytes to the next block, as they were read.
void LineCutter::carry(const TextBlock& block, const char* begin, const char* end) {
  if (begin == end) return;
  carry_.insert(carry_.begin(), begin, end);
  block.restore_line_ends(carry_.data(), carry_.data() + (end - begin));
}

/// Ends the block where the pass's stream is left, so that no block has rows of two of its turns.
/// Returns whether lines were put back.
bool LineCutter::trim(TextBlock& block) {
  const std::int64_t wanted = pass_.split.stream.own_end(next_row_) - next_row_;
  if (block.num_lines <= wanted) return false;
  const char* const all = block.text_end();
  carry(block, block.keep_lines(wanted), all);
  return true;
}

void LineCutter::open_file() {
  const std::string& path = paths_[next_path_++];
  if (records_) records_->begin(next_path_ - 1, next_row_);  // before it is opened: see end()
  file_ = std::make_shared<const std::string>(path == "-" ? "standard input" : path);
  layout_.reset();
  next_file_line_ = 1;
  at_end_ = false;
  carry_.clear();
  stream_ = open_byte_stream(path, bytes_read_, interruption_);
}

void LineCutter::begin_file(TextBlock& block) {
  const std::string_view text(block.text_begin(),
                              static_cast<std::size_t>(block.end - block.begin));
  if (text.starts_with(kByteOrderMark)) {
    block.begin += static_cast<std::int64_t>(kByteOrderMark.size());
  }
}

/// Finds the number of columns from the header, or else from the first line that is not blank;
/// blank lines need no layout.
void LineCutter::find_layout(TextBlock& block) {
  const char* line = block.text_begin();
  if (schema_.text.header && at_end_ &&
      std::string_view(line, block.text_end()).find_first_not_of("\r\n") ==
          std::string_view::npos) {
    block.begin = block.end;  // no header and no row
    return;
  }
  std::int64_t number = next_file_line_;
  if (!schema_.text.header) {
    for (; line < block.text_end() && is_blank_line(line); ++number) line += *line == '\n' ? 1 : 2;
    if (line == block.text_end()) return;
  }
  const char* const end = std::find(line, block.text_end(), '\n');
  std::string first(line, end);
  block.restore_line_ends(first.data(), first.data() + first.size());
  const std::string foreign = foreign_text(first, schema_.text.header);
  if (!foreign.empty()) {
    throw Error(ErrorCode::kInvalidData, concat(*file_, ":", number, ": ", foreign));
  }
  layout_ = std::make_shared<const ColumnMap>(schema_, first, concat(*file_, ":", number));
  if (schema_.text.header) {
    next_file_line_ += 1 + block.num_stand_ins(end);
    block.begin += end + 1 - block.text_begin();
  }
}

}  // namespace satrap::data
