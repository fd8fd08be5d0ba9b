#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/data/batch_source.h"
#include "satrap/data/topic_position.h"

namespace satrap::data {

/// The messages that rows of a topic came from, as far back as a checkpoint may ask. Thread-safe.
class TopicLog {
 public:
  explicit TopicLog(TopicPosition start) : begin_(std::move(start)) {}

  void add(const TopicPiece& piece);

  /// The beginning of the piece with the next row of `position`, or of the last one before it, and
  /// forgets what was read earlier: positions are asked for in their order. The beginning of the
  /// epoch if rows are shuffled, whose position has no row. Of a topic without an end: that row.
  TopicPosition at(const DataPosition& position);

  /// Removes the pieces whose rows are all before this one, and returns them in their order.
  std::vector<TopicPiece> take(std::int64_t end_row);

 private:
  Mutex mutex_;
  TopicPosition begin_ SATRAP_GUARDED_BY(mutex_);  // where pieces_ begin
  std::deque<TopicPiece> pieces_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace satrap::data
