#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/file_format.h"
#include "src/data/text_block.h"

namespace satrap::data {

/// Rows of a block that could not be parsed.
struct BadRows {
  static constexpr std::size_t kMaxMessages = 10;

  std::int64_t count = 0;
  std::vector<std::string> messages;  // of the first ones: "file:line: column 'I3': expected ..."
  std::map<std::string, std::int64_t> reasons;  // how many for which: "column 'I3': expected ..."
  std::int64_t last_row = -1;                   // number of the last one, if there is one

  /// Adds those of a later block.
  void append(const BadRows& later);
};

/// Parses blocks of lines into blocks of rows. Nothing is allocated per row. One thread at a time.
class BlockParser {
 public:
  virtual ~BlockParser() = default;

  /// Replaces `rows` and `bad`. Lines outside the pass are counted and skipped; blank lines and
  /// rows with an error are omitted from `rows` unless the pass keeps every line.
  virtual void parse(const TextBlock& text, RowBlock& rows, BadRows& bad) = 0;
};

/// The parser of a format of text. The schema must outlive it. Throws Error(kInvalidConfig) if the
/// schema asks for what the format does not have.
std::unique_ptr<BlockParser> make_block_parser(FileFormat format,
                                               const Schema& schema,
                                               const RowPass& pass);

}  // namespace satrap::data
