#include "src/loader/merged_streams.h"

#include <algorithm>
#include <utility>

#include "satrap/core/text.h"
#include "satrap/net/net_error.h"

namespace satrap::loader {
namespace {

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
      streams_(side, schema_) {}

PassRequest MergedStreams::request_of(std::int64_t number, std::int64_t count) const {
  PassRequest request = request_;
  request.pass.first_row = next_row_;
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
      throw net::NetError(net::NetFailure::kProtocol,
                          concat("rows before ", front.end_row, " came after row ", next_row_));
    }
    stream.pop(delivery);
    next_row_ = std::min(delivery.end_row, turn_end);
    return;
  }
}

}  // namespace satrap::loader
