#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "satrap/data/batch_source.h"
#include "satrap/data/id_texts.h"
#include "satrap/data/row_block.h"

namespace satrap::data {

class RowSelection;

/// One of several streams among which the rows of a pass are divided, in turns of
/// `rows_per_turn` rows, so that several processes read the rows of one rank.
struct RowStream {
  std::int64_t number = 0;
  std::int64_t count = 1;
  std::int64_t rows_per_turn = 1;

  bool is_all() const { return count == 1; }
  bool owns(std::int64_t row) const { return is_all() || (row / rows_per_turn) % count == number; }
  /// The number after the last row of the turn of `row`, whosever it is.
  std::int64_t turn_end(std::int64_t row) const {
    return is_all() ? INT64_MAX : (row / rows_per_turn + 1) * rows_per_turn;
  }
  /// The number after the last row of the first own turn that ends after `row`.
  std::int64_t own_end(std::int64_t row) const {
    if (is_all()) return INT64_MAX;
    const std::int64_t turn = row / rows_per_turn;
    return (turn + (number - turn % count + count) % count + 1) * rows_per_turn;
  }
};

/// The rows of this rank: runs of `rows_per_turn` rows (the batch size of a rank) are
/// assigned to the ranks in turn, so that every row has exactly one rank and the ranks read the
/// same part of the data at the same time. Rows are numbered from 0 in each epoch, over all files
/// and ranks; a file's row is a line (bad and blank ones included), so that rows of other ranks are
/// counted but not parsed.
struct RowSplit {
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::int64_t rows_per_turn = 1;
  RowStream stream = {};  // of the rank's rows, only those that are also in it

  bool owns(std::int64_t row) const {
    return (world_size == 1 || (row / rows_per_turn) % world_size == rank) && stream.owns(row);
  }
  /// Number of rows from `row` on that share its owner: `row` .. `row` + run(row) - 1.
  std::int64_t run(std::int64_t row) const {
    const std::int64_t of_rank =
        world_size == 1 ? INT64_MAX - row : rows_per_turn - row % rows_per_turn;
    return stream.is_all() ? of_rank : std::min(of_rank, stream.turn_end(row) - row);
  }
  /// How many of the rows `begin` .. `end` - 1 it owns.
  std::int64_t count(std::int64_t begin, std::int64_t end) const {
    std::int64_t own = 0;
    for (std::int64_t row = begin; row < end;) {
      const std::int64_t next = row + std::min(run(row), end - row);
      own += owns(row) ? next - row : 0;
      row = next;
    }
    return own;
  }
};

/// One pass over the rows of one epoch.
struct RowPass {
  std::int64_t epoch = 0;
  std::int64_t first_row = 0;  // rows with a smaller number are skipped
  std::int64_t max_rows = 0;   // rows from this number on are skipped; 0: none
  RowSplit split = {};         // and so are rows of other ranks
  std::shared_ptr<const RowSelection> selection = {};  // and those not in it; null: all are
  std::int64_t num_threads = 1;                        // the producer may use; at least 1
  bool keeps_every_line = false;  // of text: one without a usable row is a row with label NaN,
                                  // every number missing and every bag empty
  bool tells_empty = false;  // of text: next() also returns after lines without a good row and, of
                             // a topic without an end, once a second while nothing comes
  IdTexts* texts = nullptr;  // gets the texts of ids; may be null
  const std::atomic<bool>* stop = nullptr;  // once set: ends the reading of a pipe, as close() does
};

/// Produces the rows of one pass, in the order of their numbers, the same ones in every pass with
/// the same arguments. The producer chooses the size of blocks (a thousand or several thousand rows
/// is good). Used by one thread at a time; the producer may run its own threads, which its
/// destructor stops and joins.
class RowBlockSource {
 public:
  virtual ~RowBlockSource() = default;

  /// Fills `block` (reusing its memory) with the next rows, at least one but for
  /// RowPass::tells_empty. Blocks until they are
  /// ready. Returns false and an empty block at the end of the pass or after close(). Throws
  /// Error(kInvalidData) or Error(kIo).
  virtual bool next(RowBlock& block) = 0;

  /// Number of rows of the whole epoch (all ranks) if known without reading, else 0.
  virtual std::int64_t rows_per_epoch() const { return 0; }

  /// The rows of the pass that next() has returned or left out as bad are those before this number;
  /// of those before it that next() has not returned, none will come. For the thread of next().
  /// 0: unknown.
  virtual std::int64_t end_row() const { return 0; }

  /// bad_rows, bytes and total_bytes of this pass so far; `rows` is left 0. Thread-safe.
  virtual ReadStats stats() const { return {}; }

  /// Makes a blocked or later next() return false soon. Thread-safe.
  virtual void close() {}

  /// Whether the end that next() returned is that of close(), or of a stop, instead of the pass's.
  virtual bool was_closed() const { return false; }
};

}  // namespace satrap::data
