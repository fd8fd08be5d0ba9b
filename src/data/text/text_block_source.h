#pragma once

#include <cstdint>

#include "satrap/data/row_block_source.h"
#include "src/data/text/text_block.h"

namespace satrap::data {

/// Produces the blocks of lines of one pass, and numbers the lines. One thread at a time, except
/// for what is said to be thread-safe.
class TextBlockSource {
 public:
  virtual ~TextBlockSource() = default;

  /// Fills `block`, reusing its buffer, with lines of which some are of the pass. Returns false at
  /// the end.
  virtual bool next(TextBlock& block) = 0;

  /// Ends a wait; next() then returns false. Thread-safe.
  virtual void cancel() = 0;

  /// Whether the end that next() returned is that of cancel(), or of a stop. Thread-safe.
  virtual bool was_cancelled() const = 0;

  /// Bytes read so far. Thread-safe.
  virtual std::int64_t bytes_read() const = 0;

  /// Rows of the epoch that these bytes have held, those of other passes included. Thread-safe.
  virtual std::int64_t rows_read() const = 0;

  /// As ReadStats::lag. Thread-safe.
  virtual std::int64_t lag() const { return -1; }
};

/// Whether rows of the pass may be in the block.
inline bool has_rows_of(const RowPass& pass, const TextBlock& block) {
  const std::int64_t end = block.first_row + block.num_lines;
  if (block.num_lines == 0 || end <= pass.first_row) return false;
  const bool one_owner = pass.split.run(block.first_row) >= block.num_lines;
  return !one_owner || pass.split.owns(block.first_row);
}

}  // namespace satrap::data
