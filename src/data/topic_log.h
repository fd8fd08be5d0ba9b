#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

#include "satrap/data/batch_source.h"
#include "satrap/data/topic_position.h"

namespace satrap::data {

/// Which messages the rows of a topic came from, as far back as a checkpoint may ask. Thread-safe.
class TopicLog {
 public:
  /// Some messages of one partition, read one after another.
  struct Piece {
    std::int64_t epoch = 0, first_row = 0;
    std::int64_t partition = 0;
    std::int64_t begin = 0, end = 0;  // offsets
    std::int64_t skip = 0;            // rows of them that had been read before
    std::int64_t num_rows = 0;        // of the others
  };

  explicit TopicLog(TopicPosition start) : begin_(std::move(start)) {}

  void add(const Piece& piece);

  /// The beginning of the piece with the next row of `position`, or of the last one before it, and
  /// forgets what was read earlier: positions are asked for in their order. The beginning of the
  /// epoch if rows are shuffled, whose position has no row. Of a topic without an end: that row.
  TopicPosition at(const DataPosition& position);

 private:
  std::mutex mutex_;
  TopicPosition begin_;  // where pieces_ begin
  std::deque<Piece> pieces_;
};

}  // namespace satrap::data
