#include "src/loader/topic_streams.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"

namespace satrap::loader {
namespace {

constexpr std::chrono::milliseconds kWait{100};        // between looks for a stop and for loaders
constexpr std::int64_t kMost = std::int64_t{1} << 50;  // rows, bytes: sums of a few thousand fit
constexpr std::size_t kArrivalsPerStream = 2;          // that have come and are not taken

[[noreturn]] void fail(const std::string& what) {
  throw net::NetError(net::NetFailure::kProtocol, what);
}

}  // namespace

TopicStreams::Receivers::Receivers(const LoaderStreams& streams)
    : arrived(kArrivalsPerStream * static_cast<std::size_t>(streams.count())),
      // So many may be in the queue, with the threads and with the caller: push() never waits.
      spare((kArrivalsPerStream + 1) * static_cast<std::size_t>(streams.count()) + 1),
      threads([this, &streams] {
        arrived.close();
        for (std::int64_t i = 0; i < streams.count(); ++i) streams[i].close();
      }) {
  for (std::int64_t i = 0; i < streams.count(); ++i) {
    threads.start("loader-take", [this, &stream = streams[i], i] { receive(stream, i); });
  }
}

void TopicStreams::Receivers::receive(ReceivedStream& stream, std::int64_t number) {
  for (bool goes_on = true; goes_on;) {
    Arrival arrival{.stream = number, .delivery = spare.try_pop().value_or(data::RowDelivery())};
    try {
      goes_on = !stream.front().is_end;
      if (!goes_on) fail("the end of a topic that has none");
      stream.pop(arrival.delivery);
    } catch (...) {
      arrival.error = std::current_exception();
      goes_on = false;
    }
    if (!arrived.push(std::move(arrival))) return;
  }
}

TopicStreams::TopicStreams(RankSide& side, PassRequest request)
    : request_(std::move(request)),
      schema_(data::resolve_schema(request_.config)),
      position_(*request_.place),
      streams_(side, schema_, std::max<std::int64_t>(1, position_.num_endless())) {
  SATRAP_CHECK(position_.row == request_.pass.first_row, "a pass from row ",
               request_.pass.first_row, " cannot start at row ", position_.row);
}

bool TopicStreams::next(data::RowDelivery& delivery) {
  for (;;) {
    if (receivers_ && streams_.has_newcomer()) drop();
    if (!receivers_ && !open()) return false;
    if (!receivers_->arrived.wait(kWait)) {
      if (streams_.is_stopped()) return false;
      continue;
    }
    Arrival arrival = std::move(*receivers_->arrived.try_pop());  // of one thread: it is there
    try {
      if (arrival.error) std::rethrow_exception(arrival.error);
      take(arrival, delivery);
      streams_.note_rows();
      receivers_->spare.push(std::move(arrival.delivery));
      return true;
    } catch (const net::NetError& error) {
      if (streams_.is_closed()) return false;
      streams_.lose(streams_[arrival.stream].loader(), error.what());
      drop();
    }
  }
}

bool TopicStreams::open() {
  const auto requests = [this](std::int64_t number, std::int64_t count) {
    return request_of(number, count);
  };
  if (!streams_.open(requests)) return false;
  taken_.assign(static_cast<std::size_t>(streams_.count()), {.end_row = position_.row});
  shares_.clear();
  for (std::int64_t i = 0; i < streams_.count(); ++i) {
    shares_.push_back(position_.share_of(i, streams_.count()));
  }
  receivers_ = std::make_unique<Receivers>(streams_);
  return true;
}

/// Rows that have arrived and were not taken will be read again.
void TopicStreams::drop() {
  receivers_.reset();
  streams_.drop();
}

PassRequest TopicStreams::request_of(std::int64_t number, std::int64_t count) const {
  PassRequest request = request_;
  request.pass.first_row = position_.row;
  request.place = position_.share_of(number, count);
  return request;
}

/// Swaps the delivery of the arrival with `delivery`.
void TopicStreams::take(Arrival& arrival, data::RowDelivery& delivery) {
  data::RowDelivery& came = arrival.delivery;
  Taken& taken = taken_[static_cast<std::size_t>(arrival.stream)];
  const std::int64_t shift = position_.row - taken.end_row;
  if (came.end_row < taken.end_row || came.end_row > kMost) {
    fail(concat("rows up to ", came.end_row, " came after those up to ", taken.end_row));
  }
  if (came.rows.num_rows > 0 && came.rows.row_number(0) < taken.end_row) {
    fail(concat("row ", came.rows.row_number(0), " came twice"));
  }
  passed_ = position_;
  for (data::TopicPiece& piece : came.pieces) {
    if (piece.first_row + shift != passed_.row || piece.num_rows > came.end_row - piece.first_row) {
      fail(concat("messages with rows from ", piece.first_row, " on came for those before ",
                  came.end_row));
    }
    piece.first_row = passed_.row;
    pass_piece(piece, arrival.stream);
  }
  if (passed_.row != came.end_row + shift) {
    fail(concat("rows before ", came.end_row, " came from messages with rows before ",
                passed_.row - shift));
  }
  std::swap(position_, passed_);
  taken.end_row = std::exchange(came.end_row, position_.row);
  came.rows.first_row += shift;
  for (std::int64_t& row : came.rows.row_numbers) row += shift;
  const std::int64_t bytes = std::min(came.stats.bytes, kMost);
  bytes_ += bytes - std::exchange(taken.bytes, bytes);
  came.stats.bytes = bytes_;
  taken.lag = std::min(came.stats.lag, kMost);
  taken.time_ms = std::min(came.stats.time_ms, kMost);
  set_progress(came.stats);
  std::swap(delivery, came);
}

/// Moves passed_ behind what the stream has read, which must begin there.
void TopicStreams::pass_piece(const data::TopicPiece& piece, std::int64_t stream) {
  const auto number = static_cast<std::size_t>(piece.partition);
  const auto& share = shares_[static_cast<std::size_t>(stream)].partitions;
  if (number >= share.size() || share[number].end != data::TopicPosition::kNoEnd) {
    fail(concat("messages of partition ", piece.partition, " were not asked for"));
  }
  data::TopicPosition::Partition& at = passed_.partitions[number];
  if (piece.epoch != passed_.epoch || piece.begin != at.next || piece.skip != at.skip ||
      piece.end <= piece.begin) {
    fail(concat("messages ", piece.begin, " to ", piece.end, " of partition ", piece.partition,
                " do not continue at ", at.next));
  }
  at.next = piece.end;
  at.skip = 0;
  passed_.row += piece.num_rows;
}

/// The progress of all streams together. Until each has told its own, after they were opened, the
/// lag is that of before. A loader that has read all does not hold the time up, unless all have.
void TopicStreams::set_progress(data::ReadStats& stats) {
  std::int64_t lag = 0, newest = -1;
  std::optional<std::int64_t> oldest;
  for (const Taken& taken : taken_) {
    lag = lag < 0 || taken.lag < 0 ? -1 : lag + taken.lag;
    newest = std::max(newest, taken.time_ms);
    if (taken.lag != 0) oldest = std::min(oldest.value_or(taken.time_ms), taken.time_ms);
  }
  if (lag >= 0) lag_ = lag;
  stats.lag = lag_;
  stats.time_ms = oldest.value_or(newest);
}

}  // namespace satrap::loader
