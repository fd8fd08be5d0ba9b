#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace satrap::data {

/// A place in the rows of a topic, from which reading can continue: the partition whose turn it is,
/// and how far each has been read. Rows of a message are counted on from `row`.
struct TopicPosition {
  static constexpr std::int64_t kNoEnd = -1;

  struct Partition {
    std::int64_t first = 0;     // offset where an epoch begins
    std::int64_t next = 0;      // of the first message that has not been read
    std::int64_t end = kNoEnd;  // where an epoch ends; kNoEnd: never
    friend bool operator==(const Partition&, const Partition&) = default;
  };

  std::string topic;
  std::int64_t epoch = 0;
  std::int64_t row = 0;   // number, within the epoch, of the next row
  std::int64_t turn = 0;  // the partition that it is in
  std::vector<Partition> partitions;

  /// Where an epoch begins, with the same offsets.
  TopicPosition beginning(std::int64_t of_epoch) const;

  std::string to_json() const;

  /// Reads it back. Throws Error(kCorrupt) starting with `name` if it is none.
  static TopicPosition from_json(const std::string& text, const std::string& name);

  friend bool operator==(const TopicPosition&, const TopicPosition&) = default;
};

}  // namespace satrap::data
