#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/log.h"
#include "src/net/connection_core.h"

namespace satrap::net {
namespace {

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::int64_t size_of(std::span<const std::byte> bytes) {
  return static_cast<std::int64_t>(bytes.size());
}

}  // namespace

Ticket::State::State(std::shared_ptr<Connection::Core> connection,
                     Op op,
                     RequestBuffer buffer,
                     std::optional<std::span<std::byte>> reply,
                     Deadline until,
                     const CallOptions& options)
    : core_(std::move(connection)),
      request_(std::move(buffer)),
      destination_(reply),
      deadline_(until),
      id_(core_->next_id_.fetch_add(1)),
      slot_(core_->credits_->take(*core_->link_->breaker(), until)) {
  try {
    send(op, options);
  } catch (const NetError& error) {
    throw annotated(error);
  }
}

void Ticket::State::post_receives(const CallOptions& options) {
  const std::shared_ptr<Link>& link = core_->link_;
  if (!destination_ && options.expected_reply_bytes > kInlineReplyBytes) {
    inline_bytes_ = std::min(options.expected_reply_bytes, kMaxReplyBytes);
    own_header_ = core_->endpoint_->pool.take(kReplyHeaderBytes + inline_bytes_);
    own_header_buffer_ =
        std::make_unique<LinkBuffer>(link, own_header_.data(), kReplyHeaderBytes + inline_bytes_);
    header_ = own_header_.data();
    header_buffer_ = own_header_buffer_.get();
  } else {
    header_ = core_->reply_headers_[slot_].data();
    header_buffer_ = core_->reply_header_buffers_[slot_].get();
  }
  header_buffer_->post_receive(kServerRank, kReplySlot + slot_, 0,
                               kReplyHeaderBytes + inline_bytes_);
  if (destination_ && size_of(*destination_) > kInlineReplyBytes) {
    const std::int64_t bytes = size_of(*destination_);
    payload_buffer_ = std::make_unique<LinkBuffer>(link, destination_->data(), bytes);
    payload_buffer_->post_receive(kServerRank, kReplyPayloadSlot + slot_, 0, bytes);
  }
}

// Posts the receives first, then sends the request: the answer always has its memory ready.
void Ticket::State::send(Op op, const CallOptions& options) {
  SATRAP_CHECK(request_.memory() != nullptr, "a request needs a buffer, if only of 0 bytes");
  post_receives(options);
  const std::shared_ptr<Link>& link = core_->link_;
  const bool has_checksum = core_->endpoint_->options.checksum;
  const std::span<const std::byte> payload = request_.payload();
  RequestHeader header{};
  header.magic = kMagic;
  header.request_id = id_;
  header.payload_bytes = size_of(payload);
  header.reply_capacity = destination_ ? size_of(*destination_) : kAnySize;
  header.inline_bytes = inline_bytes_;
  header.checksum = has_checksum ? checksum_of(payload) : 0;
  header.op = op;
  header.slot = slot_;
  header.flags = (options.ordered ? kOrdered : 0U) | (has_checksum ? kHasChecksum : 0U);
  header.tag = options.tag;
  std::byte* memory = request_.memory()->memory.data();
  std::memset(memory, 0, kRequestHeaderBytes);
  std::memcpy(memory, &header, sizeof(header));

  const std::int64_t bytes = kRequestHeaderBytes + size_of(payload);
  const bool is_bulk = bytes > core_->limits_.slot_bytes;
  request_buffer_ = std::make_unique<LinkBuffer>(link, memory, bytes);
  request_buffer_->post_send(kServerRank, kRequestSlot, 0, is_bulk ? kRequestHeaderBytes : bytes);
  if (is_bulk) {
    bulk_buffer_ = std::make_unique<LinkBuffer>(link, memory, bytes);
    bulk_buffer_->post_send(kServerRank, kBulkSlot + slot_, kRequestHeaderBytes, size_of(payload));
  }
}

Ticket::State::~State() {
  try {
    wait();
  } catch (const std::exception& error) {
    log_debug("an answer nobody waited for: {}", error.what());
  }
  core_->endpoint_->pool.give_back(std::move(own_header_));
  core_->endpoint_->pool.give_back(std::move(own_payload_));
}

std::span<const std::byte> Ticket::State::wait() {
  if (!is_done_) {
    is_done_ = true;
    try {
      reply_ = receive();
    } catch (const NetError& error) {
      error_ = annotated(error);
      if (error.failure() != NetFailure::kRemote) {
        // From here on the caller may use its memory again.
        core_->link_->close(error.failure(), error.what());
      }
    }
  }
  if (error_) throw *error_;
  return reply_;
}

std::span<const std::byte> Ticket::State::receive() {
  // The payload follows the header: waiting for it first wakes this thread once.
  if (payload_buffer_) payload_buffer_->wait_receive(deadline_);
  header_buffer_->wait_receive(deadline_);
  request_buffer_->wait_send(deadline_);
  if (bulk_buffer_) bulk_buffer_->wait_send(deadline_);

  const std::byte* inlined = header_ + kReplyHeaderBytes;
  ReplyHeader header{};
  std::memcpy(&header, header_, sizeof(header));
  const std::int64_t capacity = destination_ ? size_of(*destination_) : kMaxReplyBytes;
  if (header.magic != kMagic || header.request_id != id_ || header.payload_bytes < 0 ||
      header.payload_bytes > (header.status == ReplyStatus::kOk ? capacity : kInlineReplyBytes)) {
    throw NetError(NetFailure::kProtocol, "the answer does not belong to the request");
  }
  const auto bytes = static_cast<std::size_t>(header.payload_bytes);
  std::span<const std::byte> payload;
  if (header.status != ReplyStatus::kOk) {
    const std::string text(reinterpret_cast<const char*>(inlined), bytes);
    core_->credits_->give_back(slot_);
    throw NetError(NetFailure::kRemote, text);
  }
  if (payload_buffer_) {
    payload = destination_->first(bytes);
  } else if (header.payload_bytes > inline_bytes_) {
    payload = receive_any_size(header);
  } else if (destination_) {
    if (bytes > 0) std::memcpy(destination_->data(), inlined, bytes);
    payload = destination_->first(bytes);
  } else if (own_header_buffer_) {
    payload = {inlined, bytes};
  } else {
    own_payload_ = core_->endpoint_->pool.take(header.payload_bytes);
    std::memcpy(own_payload_.data(), inlined, bytes);
    payload = {own_payload_.data(), bytes};
  }
  check_payload(header, payload);
  core_->credits_->give_back(slot_);
  return payload;
}

std::span<const std::byte> Ticket::State::receive_any_size(const ReplyHeader& header) {
  own_payload_ = core_->endpoint_->pool.take(header.payload_bytes);
  payload_buffer_ =
      std::make_unique<LinkBuffer>(core_->link_, own_payload_.data(), header.payload_bytes);
  payload_buffer_->post_receive(kServerRank, kReplyPayloadSlot + slot_, 0, header.payload_bytes);
  payload_buffer_->wait_receive(deadline_);
  return {own_payload_.data(), static_cast<std::size_t>(header.payload_bytes)};
}

void Ticket::State::check_payload(const ReplyHeader& header,
                                  std::span<const std::byte> payload) const {
  if ((header.flags & kHasChecksum) != 0 && checksum_of(payload) != header.checksum) {
    throw NetError(NetFailure::kProtocol, "the answer's bytes do not match its checksum");
  }
}

NetError Ticket::State::annotated(const NetError& error) const {
  return {error.failure(), concat(core_->peer_, ": ", error.what())};
}

Ticket::Ticket() = default;
Ticket::Ticket(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ticket::Ticket(Ticket&&) noexcept = default;
Ticket& Ticket::operator=(Ticket&&) noexcept = default;
Ticket::~Ticket() = default;

std::span<const std::byte> Ticket::wait() {
  SATRAP_CHECK(state_ != nullptr, "this ticket belongs to no call");
  return state_->wait();
}

}  // namespace satrap::net
