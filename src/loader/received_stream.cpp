#include "src/loader/received_stream.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "satrap/net/net_error.h"

namespace satrap::loader {
namespace {

/// A loader may read a file for long before the first row: what ends a wait for one that lives no
/// more is the connection, by its end or for want of heartbeats.
net::Deadline while_it_lives() {
  constexpr std::chrono::hours kYear{365 * 24};
  return net::Deadline::after_ms(std::chrono::milliseconds(kYear).count());
}

}  // namespace

ReceivedStream::ReceivedStream(const net::Endpoint& endpoint,
                               LoaderEntry loader,
                               const data::Schema& schema,
                               const std::string& rank,
                               net::Deadline deadline)
    : endpoint_(endpoint),
      loader_(std::move(loader)),
      schema_(schema),
      connection_(endpoint, loader_.address, server_name(loader_.number), rank, deadline) {}

void ReceivedStream::open(const PassRequest& request) {
  split_ = request.pass.split;
  const std::string bytes = to_bytes(request);
  const net::RequestBuffer buffer(endpoint_, {std::as_bytes(std::span(bytes))});
  net::Ticket ticket = connection_.call_for_any_size(kOpen, buffer, while_it_lives());
  const std::span<const std::byte> answer = ticket.wait();
  if (!answer.empty()) throw_error(answer, server_name(loader_.number));
  for (std::int64_t i = 0; i < kMaxInFlight; ++i) ask();
}

void ReceivedStream::ask() {
  asked_.push_back(connection_.call_for_any_size(kNext, net::RequestBuffer(endpoint_, 0),
                                                 while_it_lives(),
                                                 {.expected_reply_bytes = expected_bytes_}));
}

const data::RowDelivery& ReceivedStream::front() {
  if (!has_front_) receive();
  return front_;
}

void ReceivedStream::pop(data::RowDelivery& delivery) {
  std::swap(delivery, front_);
  has_front_ = false;
  ask();
}

void ReceivedStream::receive() {
  net::Ticket ticket = std::move(asked_.front());
  asked_.pop_front();
  const std::span<const std::byte> bytes = ticket.wait();
  const auto size = static_cast<std::int64_t>(bytes.size());
  expected_bytes_ = std::max(expected_bytes_, size + size / 4);
  if (!bytes.empty() && bytes[0] == static_cast<std::byte>(AnswerKind::kError)) {
    throw_error(bytes, server_name(loader_.number));
  }
  try {
    if (bytes.empty() || bytes[0] != static_cast<std::byte>(AnswerKind::kDelivery)) {
      throw Error(ErrorCode::kInvalidData, "an answer of an unknown kind");
    }
    data::read(bytes.subspan(1), schema_, front_);
    check(front_);
  } catch (const Error& error) {
    throw net::NetError(net::NetFailure::kProtocol, error.what());
  }
  has_front_ = true;
}

void ReceivedStream::check(const data::RowDelivery& delivery) const {
  const data::RowBlock& rows = delivery.rows;
  if (delivery.is_end) return;
  const std::int64_t turn = turn_of(delivery.end_row);
  std::int64_t last = -1;
  for (std::int64_t r = 0; r < rows.num_rows; ++r) {
    const std::int64_t row = rows.row_number(r);
    const bool is_ours = row > last && split_.owns(row) && row < delivery.end_row &&
                         (split_.stream.is_all() || row / split_.stream.rows_per_turn == turn);
    if (!is_ours) throw Error(ErrorCode::kInvalidData, concat("row ", row, " was not asked for"));
    last = row;
  }
}

std::int64_t ReceivedStream::turn_of(std::int64_t end_row) const {
  const data::RowStream& stream = split_.stream;
  if (stream.is_all()) return 0;
  const std::int64_t last = std::max<std::int64_t>(0, end_row - 1) / stream.rows_per_turn;
  return last - (last % stream.count - stream.number + stream.count) % stream.count;
}

}  // namespace satrap::loader
