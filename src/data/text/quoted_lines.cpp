#include "src/data/text/quoted_lines.h"

#include <algorithm>
#include <cstring>

namespace satrap::data {
namespace {

const char* find(const char* begin, const char* end, char c) {
  const void* const found = std::memchr(begin, c, static_cast<std::size_t>(end - begin));
  return found == nullptr ? end : static_cast<const char*>(found);
}

/// A control character that the text has not; a space if it has all of them.
char stand_in_for(const char* begin, const char* end, char delimiter, char quote) {
  for (char c = 1; c < ' '; ++c) {
    if (c == '\t' || c == '\n' || c == '\r' || c == delimiter || c == quote) continue;
    if (find(begin, end, c) == end) return c;
  }
  return ' ';
}

}  // namespace

QuotedLines::QuotedLines(const SchemaConfig& text)
    : delimiter_(text.delimiter.front()),
      quote_(text.quote.empty() || text.value_rule == 1 ? '\0' : text.quote.front()),
      trim_(text.trim) {}

/// The next quote at the beginning of a field; `end`: there is none. `from` is outside of quotes.
const char* QuotedLines::find_opening(const char* from, const char* begin, const char* end) const {
  for (const char* p = from; (p = find(p, end, quote_)) != end; ++p) {
    const char* before = p;
    while (before > begin && is_blank(before[-1])) --before;
    if (before == begin || before[-1] == delimiter_ || before[-1] == '\n') return p;
  }
  return end;
}

/// Behind two quotes that stand for one, the quote that closes the field; null: there is none.
const char* QuotedLines::find_closing(const char* opening, const char* end) const {
  for (const char* p = opening + 1; (p = find(p, end, quote_)) != end; p += 2) {
    if (p + 1 == end || p[1] != quote_) return p;
  }
  return nullptr;
}

/// The byte for the first line end of [begin, end), as join says.
char QuotedLines::choose(char* block, char* begin, char* end, char& stand_in) const {
  if (stand_in != 0 && find(begin, end, stand_in) == end) return stand_in;
  const char chosen = stand_in_for(block, end, delimiter_, quote_);
  if (chosen == ' ') return chosen;
  if (stand_in != 0) std::replace(block, begin, stand_in, chosen);
  return stand_in = chosen;
}

std::int64_t QuotedLines::join(char* block,
                               char* begin,
                               char* end,
                               bool is_all,
                               char& stand_in) const {
  char byte = 0;           // in the place of line ends
  const char* open = end;  // a quote whose field goes on behind the text
  for (const char* p = begin; quote_ != '\0' && (p = find_opening(p, begin, end)) != end;) {
    const char* const limit = std::min<const char*>(end, p + kMostBytes);
    const char* const closing = find_closing(p, limit);
    // The last byte of a text that goes on may be the first of two quotes.
    const bool may_go_on = !is_all && limit == end && (closing == nullptr || closing + 1 == end);
    if (may_go_on) {
      open = p;
      break;
    }
    if (closing == nullptr) {
      p = find(p, end, '\n');
      continue;
    }
    for (char* line_end = begin + (p - begin);
         (line_end = begin + (find(line_end, closing, '\n') - begin)) != closing; ++line_end) {
      if (byte == 0) byte = choose(block, begin, end, stand_in);
      *line_end = byte;
    }
    p = closing + 1;
  }
  const auto size = static_cast<std::size_t>(open - begin);
  const void* const last = size == 0 ? nullptr : memrchr(begin, '\n', size);
  return last == nullptr ? 0 : static_cast<const char*>(last) + 1 - begin;
}

}  // namespace satrap::data
