#include "src/data/topic/topic_log.h"

#include <tuple>

namespace satrap::data {
namespace {

bool is_read_at(const TopicPiece& piece, const DataPosition& position) {
  return std::tie(piece.epoch, piece.first_row) <= std::tie(position.epoch, position.next_row);
}

/// Moves to the piece, whose partition's turn it then is.
void move_to(TopicPosition& position, const TopicPiece& piece) {
  if (piece.epoch != position.epoch) position = position.beginning(piece.epoch);
  position.row = piece.first_row;
  position.turn = piece.partition;
  TopicPosition::Partition& at = position.partitions[static_cast<std::size_t>(piece.partition)];
  at.next = piece.begin;
  at.skip = piece.skip;
}

}  // namespace

void TopicLog::add(const TopicPiece& piece) {
  const MutexLock lock(mutex_);
  pieces_.push_back(piece);
}

TopicPosition TopicLog::at(const DataPosition& position) {
  const MutexLock lock(mutex_);
  const bool is_endless = begin_.is_endless();
  if (position.next_row == 0 && !is_endless) return begin_.beginning(position.epoch);
  while (!pieces_.empty() && is_read_at(pieces_.front(), position)) {
    const TopicPiece& piece = pieces_.front();
    move_to(begin_, piece);
    if (pieces_.size() == 1 || !is_read_at(pieces_[1], position)) break;
    TopicPosition::Partition& at = begin_.partitions[static_cast<std::size_t>(piece.partition)];
    at.next = piece.end;
    at.skip = 0;
    pieces_.pop_front();
  }
  if (!is_endless) return begin_;
  TopicPosition next = begin_;
  TopicPosition::Partition& at = next.partitions[static_cast<std::size_t>(next.turn)];
  const std::int64_t num_read = position.next_row - begin_.row;
  if (!pieces_.empty() && is_read_at(pieces_.front(), position) &&
      num_read == pieces_.front().num_rows) {  // all of it, and it may be deleted
    at.next = pieces_.front().end;
    at.skip = 0;
  } else {
    at.skip += num_read;
  }
  next.row = position.next_row;
  return next;
}

std::vector<TopicPiece> TopicLog::take(std::int64_t end_row) {
  const MutexLock lock(mutex_);
  std::vector<TopicPiece> taken;
  while (!pieces_.empty() && pieces_.front().first_row + pieces_.front().num_rows <= end_row) {
    taken.push_back(pieces_.front());
    pieces_.pop_front();
  }
  return taken;
}

}  // namespace satrap::data
