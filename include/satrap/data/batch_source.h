#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "satrap/data/batch.h"
#include "satrap/data/data_file.h"
#include "satrap/data/topic_position.h"

namespace satrap::data {

/// The position of a stream of batches, from which it can continue. `batches` counts the batches
/// returned in this epoch. `next_row` is the number (within the epoch, over all ranks) of the first
/// row that was not returned; 0 if unknown, as with a shuffle buffer: then the earlier batches are
/// read again, which takes longer but gives the same result. `rows_read` is the number of the first
/// row that had not been read: next_row or, with a shuffle buffer, the first that was not in it.
struct DataPosition {
  std::int64_t epoch = 0;
  std::int64_t batches = 0;
  std::int64_t next_row = 0;
  std::int64_t rows_read = 0;
  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

/// Counts of what has been read so far.
struct ReadStats {
  std::int64_t rows = 0;         // good rows returned
  std::int64_t bad_rows = 0;     // rows skipped
  std::int64_t left_out = 0;     // rows that no condition, rate or weight lets in
  std::int64_t bytes = 0;        // read from the files (compressed size)
  std::int64_t total_bytes = 0;  // of all files of an epoch; 0 if unknown (standard input)
  double epoch_rows = 0.0;       // good rows of an epoch, of all ranks: estimated from the bytes
                                 // that have been read; 0 if unknown
  std::int64_t lag = -1;         // of a topic: messages that are there and not read; -1: no topic
  std::int64_t time_ms = -1;  // of a topic: when the newest messages read were written, in ms since
                              // 1970, in the partition that is furthest behind; -1: unknown
};

/// A stream of batches over several epochs of the data. Used by one thread at a time; it may run
/// its own threads, which its destructor stops and joins.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Fills `batch` with the next rows; blocks until they are read. False at the end of the last
  /// epoch. Every batch has the configured number of rows except the last of an epoch, which may be
  /// shorter (never empty). Throws Error(kInvalidData) or Error(kIo) as the readers do.
  virtual bool next(Batch& batch) = 0;

  /// Waits until next() of endless data would return at once; false if that takes longer. Data that
  /// have an end return true at once, however long next() may take.
  virtual bool wait(std::chrono::milliseconds at_most) {
    static_cast<void>(at_most);
    return true;
  }

  /// The data have no end of their own: next() returns false after a stop or close() alone.
  virtual bool is_endless() const { return false; }

  /// The position after the last batch returned: a source opened there continues with the next.
  virtual DataPosition position() const = 0;

  /// The last batch returned was the last of its epoch. Of a pipe, whose end is not known ahead,
  /// false.
  virtual bool has_ended_epoch() const { return false; }

  /// Thread-safe.
  virtual ReadStats stats() const = 0;

  /// How many rows were skipped for which reason, such as "column 'I3': expected a number".
  /// Thread-safe.
  virtual std::map<std::string, std::int64_t> bad_row_reasons() const { return {}; }

  /// The files of an epoch in reading order, with what has been seen of them so far: at least those
  /// with rows of the batches returned have been opened. Empty if the rows are from elsewhere.
  /// Thread-safe.
  virtual std::vector<DataFile> files() const { return {}; }

  /// The place in the topic that a position stands for, at a row that is not after its next one.
  /// Nothing if the rows are from elsewhere. Positions are asked for in their order. Thread-safe.
  virtual std::optional<TopicPosition> topic_position(const DataPosition& position) const {
    static_cast<void>(position);
    return std::nullopt;
  }

  /// Number of rows of one epoch if it is known without reading the data, else 0 (for ETA).
  virtual std::int64_t rows_per_epoch() const { return 0; }

  /// Makes a blocked or later next() return false soon. Thread-safe.
  virtual void close() = 0;
};

}  // namespace satrap::data
