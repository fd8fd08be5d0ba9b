#include <algorithm>
#include <cstring>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/log.h"
#include "src/net/session.h"

namespace satrap::net {
namespace {

// Time for the send of the previous answer to end, whose last byte the client has already read.
constexpr std::int64_t kSendTailMs = 10'000;

}  // namespace

void Session::prepare(Outgoing& outgoing, std::int64_t bytes) {
  try {
    if (outgoing.buffer && outgoing.buffer->is_sending()) {
      outgoing.buffer->wait_send(Deadline::after_ms(kSendTailMs));
    }
  } catch (const NetError& error) {
    // The connection has ended. The handler may still write its answer; send() will drop it.
    log_debug("answer to '{}' will be dropped: {}", client_, error.what());
  }
  if (outgoing.memory.data() != nullptr && outgoing.memory.capacity() >= bytes) return;
  outgoing.buffer.reset();
  endpoint_->pool.give_back(std::move(outgoing.memory));
  outgoing.memory = {};
  outgoing.memory = endpoint_->pool.take(bytes);
  outgoing.buffer =
      std::make_unique<LinkBuffer>(link_, outgoing.memory.data(), outgoing.memory.capacity());
}

ServerCall::State::~State() {
  if (!is_answered) fail("the server dropped the request");
  session->recycle(request);
}

std::span<std::byte> ServerCall::State::reply_space(std::int64_t bytes) {
  const std::int64_t capacity = request.header.reply_capacity;
  const std::int64_t limit = capacity == kAnySize ? kMaxReplyBytes : capacity;
  SATRAP_CHECK(reply_bytes < 0 && !is_answered, "a second answer to one request");
  if (bytes < 0 || bytes > limit) {
    throw NetError(NetFailure::kProtocol,
                   concat("an answer of ", bytes, " bytes, the client has room for ", limit));
  }
  Session::ReplySlot& slot = session->reply_slots_[request.header.slot];
  const MutexLock lock(slot.mutex);
  reply_bytes = bytes;
  std::byte* memory = nullptr;
  if (fits_inline(bytes)) {
    session->prepare(slot.header, kReplyHeaderBytes + std::max(bytes, kInlineReplyBytes));
    memory = slot.header.memory.data() + kReplyHeaderBytes;
  } else {
    session->prepare(slot.header, kReplyHeaderBytes + kInlineReplyBytes);
    session->prepare(slot.payload, bytes);
    memory = slot.payload.memory.data();
  }
  space = {memory, static_cast<std::size_t>(bytes)};
  return space;
}

void ServerCall::State::send(ReplyStatus status, std::int64_t bytes) {
  is_answered = true;
  Session::ReplySlot& slot = session->reply_slots_[request.header.slot];
  const MutexLock lock(slot.mutex);
  const bool has_checksum = session->endpoint_->options.checksum && status == ReplyStatus::kOk;
  ReplyHeader header{};
  header.magic = kMagic;
  header.request_id = request.header.request_id;
  header.payload_bytes = bytes;
  header.status = status;
  if (has_checksum) {
    header.flags = kHasChecksum;
    header.checksum = hash_bytes({reinterpret_cast<const char*>(space.data()), space.size()});
  }
  std::memset(slot.header.memory.data(), 0, kReplyHeaderBytes);
  std::memcpy(slot.header.memory.data(), &header, sizeof(header));
  const bool is_inline = status != ReplyStatus::kOk || fits_inline(bytes);
  const std::int64_t payload_bytes = status == ReplyStatus::kOk ? bytes : 0;
  slot.is_busy = false;  // the client may use the slot again as soon as it has the last byte
  try {
    slot.header.buffer->post_send(kClientRank, kReplySlot + request.header.slot, 0,
                                  kReplyHeaderBytes + (is_inline ? bytes : 0));
    if (has_posted_payload() || !is_inline) {
      slot.payload.buffer->post_send(kClientRank, kReplyPayloadSlot + request.header.slot, 0,
                                     payload_bytes);
    }
  } catch (const NetError& error) {
    log_debug("answer to '{}' dropped: {}", session->client_, error.what());
  }
}

void ServerCall::State::fail(const std::string& message) noexcept {
  try {
    if (reply_bytes < 0) reply_space(0);
    const auto bytes = std::min(static_cast<std::int64_t>(message.size()), kInlineReplyBytes);
    Session::ReplySlot& slot = session->reply_slots_[request.header.slot];
    {
      const MutexLock lock(slot.mutex);
      std::memcpy(slot.header.memory.data() + kReplyHeaderBytes, message.data(),
                  static_cast<std::size_t>(bytes));
    }
    send(ReplyStatus::kFailed, bytes);
  } catch (const std::exception& error) {
    is_answered = true;
    log_warning("no answer to '{}' possible: {}", session->client_, error.what());
    session->close(error.what());
  }
}

ServerCall::ServerCall(std::unique_ptr<State> state) : state_(std::move(state)) {}
ServerCall::~ServerCall() = default;

Op ServerCall::op() const { return state_->request.header.op; }
const RequestTag& ServerCall::tag() const { return state_->request.header.tag; }
const std::string& ServerCall::client_name() const { return state_->session->client(); }
const void* ServerCall::connection() const { return state_->session.get(); }
std::span<const std::byte> ServerCall::payload() const { return state_->request.payload; }
std::int64_t ServerCall::reply_capacity() const { return state_->request.header.reply_capacity; }

std::span<std::byte> ServerCall::reply_space(std::int64_t bytes) {
  return state_->reply_space(bytes);
}

void ServerCall::send() {
  SATRAP_CHECK(state_->reply_bytes >= 0 && !state_->is_answered, "nothing to send");
  state_->send(ReplyStatus::kOk, state_->reply_bytes);
}

void ServerCall::reply(std::span<const std::byte> bytes) {
  const std::span<std::byte> space = reply_space(static_cast<std::int64_t>(bytes.size()));
  if (!bytes.empty()) std::memcpy(space.data(), bytes.data(), bytes.size());
  send();
}

bool ServerCall::is_answered() const { return state_->is_answered; }

void ServerCall::fail(const std::string& message) {
  SATRAP_CHECK(!state_->is_answered, "a second answer to one request");
  state_->fail(message);
}

}  // namespace satrap::net
