#include "src/loader/merged_streams.h"

#include <algorithm>
#include <utility>

#include "satrap/core/text.h"
#include "satrap/net/net_error.h"

namespace satrap::loader {
namespace {

[[noreturn]] void fail_protocol(const std::string& what) {
  throw net::NetError(net::NetFailure::kProtocol, what);
}

/// The place where the streams of a pass over a topic begin to read.
std::optional<data::TopicPosition> first_place(const PassRequest& request) {
  const std::optional<data::TopicPosition>& place = request.place;
  if (!place) return std::nullopt;
  const bool continues = place->epoch == request.pass.epoch && place->row <= request.pass.first_row;
  return continues ? *place : place->beginning(request.pass.epoch);
}

/// A turn has whole turns of every rank, so that each of them has as many rows in it.
std::int64_t turn_of_loaders(const data::RowSplit& split, std::int64_t rows_per_turn) {
  if (split.world_size == 1) return rows_per_turn;
  const std::int64_t round = split.world_size * split.rows_per_turn;
  return (split.world_size * rows_per_turn + round - 1) / round * round;
}

}  // namespace

MergedStreams::MergedStreams(RankSide& side, PassRequest request)
    : request_(std::move(request)),
      schema_(data::resolve_schema(request_.config)),
      rows_per_turn_(turn_of_loaders(request_.pass.split, side.options.rows_per_turn)),
      next_row_(request_.pass.first_row),
      place_(first_place(request_)),
      streams_(side, schema_) {}

PassRequest MergedStreams::request_of(std::int64_t number, std::int64_t count) const {
  PassRequest request = request_;
  request.pass.first_row = next_row_;
  request.place = place_;
  request.pass.split.stream = {.number = number, .count = count, .rows_per_turn = rows_per_turn_};
  return request;
}

bool MergedStreams::next(data::RowDelivery& delivery) {
  for (;;) {
    if (streams_.is_open() && streams_.has_newcomer()) streams_.drop();
    if (!streams_.is_open() && !streams_.open([this](std::int64_t number, std::int64_t count) {
          return request_of(number, count);
        })) {
      return false;
    }
    try {
      take(delivery);
      streams_.note_rows();
      return true;
    } catch (const net::NetError& error) {
      if (streams_.is_closed()) return false;
      streams_.lose(asked_->loader(), error.what());
      streams_.drop();
    }
  }
}

void MergedStreams::take(data::RowDelivery& delivery) {
  const std::int64_t count = streams_.count();
  for (std::int64_t num_ended = 0;;) {
    const std::int64_t turn = count == 1 ? 0 : next_row_ / rows_per_turn_;
    const std::int64_t turn_end = count == 1 ? INT64_MAX : (turn + 1) * rows_per_turn_;
    ReceivedStream& stream = streams_[turn % count];
    asked_ = &stream;
    const data::RowDelivery& front = stream.front();
    if (front.is_end) {
      if (++num_ended == count) {  // one after the other: no stream has more rows
        delivery = front;
        delivery.pieces.clear();
        return;
      }
      next_row_ = turn_end;
      continue;
    }
    const std::int64_t turn_of_front = stream.turn_of(front.end_row);
    if (turn_of_front > turn) {
      num_ended = 0;
      next_row_ = turn_end;
      continue;
    }
    if (turn_of_front < turn || front.end_row <= next_row_) {
      fail_protocol(concat("rows before ", front.end_row, " came after row ", next_row_));
    }
    stream.pop(delivery);
    take_pieces(turn % count, delivery);
    next_row_ = std::min(delivery.end_row, turn_end);
    return;
  }
}

/// All streams read all messages, and each says how it has cut them.
void MergedStreams::take_pieces(std::int64_t stream, data::RowDelivery& delivery) {
  if (!place_ || stream != 0) {
    delivery.pieces.clear();
    return;
  }
  for (const data::TopicPiece& piece : delivery.pieces) pass_piece(piece);
}

/// Moves to the beginning of the piece, which must follow the last one or, after streams were
/// opened anew, begin as it does.
void MergedStreams::pass_piece(const data::TopicPiece& piece) {
  data::TopicPosition next = *place_;
  const bool is_again = piece.first_row == next.row && last_ && piece.begin == last_->begin &&
                        piece.partition == last_->partition && piece.skip == last_->skip;
  if (last_ && !is_again) {
    data::TopicPosition::Partition& at =
        next.partitions[static_cast<std::size_t>(last_->partition)];
    at.next = last_->end;
    at.skip = 0;
    next.row += last_->num_rows;
  }
  if (piece.partition < 0 || piece.partition >= std::ssize(next.partitions)) {
    fail_protocol(concat("messages of a partition ", piece.partition, " came"));
  }
  data::TopicPosition::Partition& at = next.partitions[static_cast<std::size_t>(piece.partition)];
  if (piece.epoch != next.epoch || piece.first_row != next.row || piece.begin != at.next ||
      piece.end < piece.begin || piece.num_rows < 0 || piece.skip < 0) {
    fail_protocol(concat("messages ", piece.begin, " to ", piece.end, " of partition ",
                         piece.partition, " do not continue at ", at.next));
  }
  at.skip = piece.skip;
  next.turn = piece.partition;
  place_ = std::move(next);
  last_ = piece;
}

}  // namespace satrap::loader
