#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace satrap::data {

/// Some messages of one partition, read one after another, or a part of one.
struct TopicPiece {
  std::int64_t epoch = 0, first_row = 0;
  std::int64_t partition = 0;
  std::int64_t begin = 0, end = 0;  // offsets
  std::int64_t skip = 0;            // rows of them that had been read before
  std::int64_t num_rows = 0;        // of the others
  friend bool operator==(const TopicPiece&, const TopicPiece&) = default;
};

/// A place in the rows of a topic, from which reading can continue: the partition whose turn it is,
/// and how far each has been read. Of a topic with an end it is the beginning of a piece, from
/// which rows are counted on from `row`. Without an end it is the next row itself, in a
/// message or before one.
struct TopicPosition {
  static constexpr std::int64_t kNoEnd = -1;

  struct Partition {
    std::int64_t first = 0;     // offset where an epoch begins
    std::int64_t next = 0;      // of the first message that has not been read
    std::int64_t end = kNoEnd;  // where an epoch ends; kNoEnd: never
    std::int64_t skip = 0;      // rows from `next` on that have been read
    friend bool operator==(const Partition&, const Partition&) = default;
  };

  std::string topic;
  std::int64_t epoch = 0;
  std::int64_t row = 0;   // number, within the epoch, of the next row
  std::int64_t turn = 0;  // the partition that it is in
  std::vector<Partition> partitions;

  /// The beginning of an epoch, with the same offsets.
  TopicPosition beginning(std::int64_t of_epoch) const;

  bool is_endless() const { return num_endless() > 0; }
  std::int64_t num_endless() const;  // partitions without an end

  /// Each of several readers of a topic without an end has partitions of its own: every
  /// `num_readers`-th of those without an end from its number on. The share of a reader has no
  /// message of the others.
  TopicPosition share_of(std::int64_t reader, std::int64_t num_readers) const;

  /// The share of a rank. Throws Error(kInvalidConfig) if there are fewer partitions than ranks.
  TopicPosition share_of_rank(std::int64_t rank, std::int64_t num_ranks) const;

  /// The place where all ranks are whose shares these are, in the order of the ranks. They number
  /// their rows apart, so all continue from the largest number.
  static TopicPosition merge(const std::vector<TopicPosition>& shares);

  std::string to_json() const;

  /// Reads it back. Throws Error(kCorrupt) starting with `name` if it is none.
  static TopicPosition from_json(const std::string& text, const std::string& name);

  friend bool operator==(const TopicPosition&, const TopicPosition&) = default;
};

}  // namespace satrap::data
