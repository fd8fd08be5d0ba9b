#include "src/data/topic/message_parser.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kBufferBytes = std::int64_t{8} << 20;  // beside those of the message
constexpr std::int64_t kReadRows = 2048;

void report_message(const std::string& fault,
                    std::int64_t num_rows,
                    std::int64_t last_row,
                    BadRows& bad) {
  bad.count += num_rows;
  bad.last_row = last_row;
  bad.reasons["a message that cannot be read"] += num_rows;
  if (bad.messages.size() < BadRows::kMaxMessages) bad.messages.push_back(fault);
}

}  // namespace

MessageParser::MessageParser(const Schema& schema, const RowPass& pass)
    : pass_(pass), columns_(schema, pass), filler_(schema) {}

void MessageParser::parse(const TextBlock& text, RowBlock& rows, BadRows& bad) {
  bad.clear();
  filler_.begin(rows, 0);
  filler_.finish();
  for (const TextBlock::Columns& message : text.columns) {
    const std::int64_t first = text.first_row + message.first_line;
    const std::int64_t begin = std::max(first + message.num_skipped, pass_.first_row);
    std::int64_t end = std::min(first + message.num_rows, text.first_row + text.num_lines);
    if (pass_.max_rows > 0) end = std::min(end, pass_.max_rows);
    if (message.source == nullptr) {
      if (pass_.split.count(begin, end) > 0) report_message(message.fault, 1, first, bad);
      continue;
    }
    ParquetGroup group{.source = message.source, .first_row = first, .message = &text};
    for (const std::int64_t num_rows : message.source->file->rows_of_groups()) {
      ++group.group;
      group.num_rows = num_rows;
      parse_group(group,
                  {std::max(begin, group.first_row), std::min(end, group.first_row + num_rows)},
                  rows, bad);
      group.first_row += num_rows;
      group.rows_before += num_rows;
    }
  }
}

/// Adds the wanted rows of a row group or record batch.
void MessageParser::parse_group(const ParquetGroup& group,
                                Range wanted,
                                RowBlock& rows,
                                BadRows& bad) {
  const std::int64_t num_own = pass_.split.count(wanted.begin, wanted.end);
  if (num_own == 0) return;
  const std::int64_t num_before = rows.num_rows;
  const BadRows bad_before = bad;
  try {
    translate_damage(group.source->path, [&] { read_group(group, wanted, rows, bad); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidData) throw;
    rows.truncate(num_before);
    bad = bad_before;
    report_message(error.what(), num_own, wanted.end - 1, bad);
  }
}

void MessageParser::read_group(const ParquetGroup& group,
                               Range wanted,
                               RowBlock& rows,
                               BadRows& bad) {
  const MappedParquet& source = *group.source;
  const auto reader = source.file->read_group(group.group, source.columns, kBufferBytes);
  values_.resize(source.columns.size());
  columns_.begin(group);
  std::int64_t at = group.first_row;
  // Also what is skipped is read, so that rows are good or bad wherever a pass begins.
  for (std::int64_t n = 0; at < wanted.end; at += n) {
    const std::int64_t limit = at < wanted.begin ? wanted.begin : wanted.end;
    n = std::min(kReadRows, limit - at);
    reader->read(n, values_);
    if (at < wanted.begin) continue;
    columns_.parse(values_, at, n, piece_, bad_of_piece_);
    bad.append(bad_of_piece_);
    if (rows.num_rows == 0) {
      std::swap(rows, piece_);
    } else {
      rows.append(piece_);
    }
  }
}

}  // namespace satrap::data
