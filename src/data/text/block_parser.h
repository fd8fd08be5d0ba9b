#pragma once

#include <memory>

#include "satrap/data/bad_rows.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/terms/file_format.h"
#include "src/data/text/text_block.h"

namespace satrap::data {

/// Parses blocks of lines into blocks of rows. Nothing is allocated per row. One thread at a time.
class BlockParser {
 public:
  virtual ~BlockParser() = default;

  /// Replaces `rows` and `bad`. Lines outside the pass are counted and skipped; blank lines and
  /// rows with an error are omitted from `rows` unless the pass keeps every line.
  virtual void parse(const TextBlock& text, RowBlock& rows, BadRows& bad) = 0;
};

/// The parser of lines of a format of text. The schema must outlive it. Throws
/// Error(kInvalidConfig) if the schema asks for what the format does not have.
std::unique_ptr<BlockParser> make_block_parser(FileFormat format,
                                               const Schema& schema,
                                               const RowPass& pass);

}  // namespace satrap::data
