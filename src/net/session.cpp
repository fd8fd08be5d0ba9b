#include "src/net/session.h"

#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/log.h"
#include "src/net/bytes.h"
#include "src/net/proof.h"

namespace satrap::net {
namespace {

// Gloo's timeouts are in milliseconds from now; the breaker ends these waits, so any deadline will
// do.
Deadline never() {
  constexpr std::int64_t kYearMs = std::int64_t{365} * 24 * 3600 * 1000;
  return Deadline::after_ms(kYearMs);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Session::Session(std::shared_ptr<Endpoint::Impl> endpoint,
                 const ServerOptions& options,
                 std::string client)
    : endpoint_(std::move(endpoint)),
      options_(options),
      client_(std::move(client)),
      key_(random_nonce()),
      setup_deadline_(Deadline::after_ms(options.setup_timeout_ms)),
      ring_(std::make_shared<Ring>()),
      link_(std::make_shared<Link>(endpoint_->next_device(),
                                   kServerRank,
                                   2,
                                   [ring = ring_] {
                                     const MutexLock lock(ring->mutex);
                                     ring->changed.notify_all();
                                   })),
      reply_slots_(static_cast<std::size_t>(options.max_in_flight)) {}

Session::~Session() {
  close("session ended");
  ring_buffers_.clear();
  for (PooledMemory& memory : ring_memory_) endpoint_->pool.give_back(std::move(memory));
  for (ReplySlot& slot : reply_slots_) {
    for (Outgoing* outgoing : {&slot.header, &slot.payload}) {
      outgoing->buffer.reset();
      endpoint_->pool.give_back(std::move(outgoing->memory));
    }
  }
}

void Session::close(const std::string& reason) {
  std::unique_ptr<Monitor::Watch> watch;
  {
    const MutexLock lock(watch_mutex_);
    watch = std::move(watch_);
  }
  if (watch) watch->say_goodbye(reason);
  watch.reset();
  link_->close(NetFailure::kClosed, reason);
}

std::string Session::answer() const {
  return ByteWriter()
      .put(options_.max_in_flight)
      .put(options_.slot_bytes)
      .put(options_.max_request_bytes)
      .put_text(key_)
      .bytes();
}

void Session::take_control(FrameSocket control) {
  control.set_max_frame_bytes(kMaxControlBytes);
  const MutexLock lock(watch_mutex_);
  watch_ = endpoint_->monitor.watch(
      std::move(control), [link = link_.get()](NetFailure failure, const std::string& reason) {
        link->breaker()->trip(failure, reason);  // the watch ends before the link
      });
}

bool Session::take_link(Fd socket) {
  const MutexLock lock(ring_->mutex);
  if (std::exchange(ring_->has_link, true)) return false;
  ring_->link = std::move(socket);
  ring_->changed.notify_all();
  return true;
}

void Session::run(const Dispatch& dispatch) {
  adopt_link();
  open_ring();
  for (;;) {
    Received request = receive(never());
    const bool ordered = (request.header.flags & kOrdered) != 0;
    const bool is_reserved = request.header.op >= kFirstReservedOp;
    auto call = std::make_unique<ServerCall>(
        std::make_unique<ServerCall::State>(shared_from_this(), std::move(request)));
    if (is_reserved) {
      call->fail(concat("unknown operation ", call->op()));
    } else {
      dispatch(std::move(call), ordered);
    }
  }
}

void Session::adopt_link() {
  Fd socket;
  {
    const MutexLock lock(ring_->mutex);
    while (!ring_->has_link && !link_->breaker()->is_tripped() &&
           ring_->changed.wait_until(ring_->mutex, setup_deadline_.at())) {
    }
    socket = std::move(ring_->link);
  }
  link_->breaker()->check();
  if (!socket) throw NetError(NetFailure::kTimeout, "it has not opened its second connection");
  link_->adopt(kClientRank, std::move(socket));
}

void Session::open_ring() {
  for (std::int64_t i = 0; i <= options_.max_in_flight; ++i) {
    ring_memory_.push_back(endpoint_->pool.take(options_.slot_bytes));
    ring_buffers_.push_back(
        std::make_unique<LinkBuffer>(link_, ring_memory_.back().data(), options_.slot_bytes));
    post(ring_buffers_.size() - 1);
  }
}

void Session::post(std::size_t ring_slot) {
  const MutexLock in_order(post_mutex_);
  ring_buffers_[ring_slot]->post_receive(kClientRank, kRequestSlot, 0, options_.slot_bytes);
  const MutexLock lock(ring_->mutex);
  ring_->posted.push_back(ring_slot);
  ring_->changed.notify_all();
}

void Session::recycle(Received& request) {
  endpoint_->pool.give_back(std::move(request.bulk));
  if (!request.ring_slot) return;
  try {
    post(*request.ring_slot);
  } catch (const NetError& error) {
    log_debug("'{}' gets no more memory: {}", client_, error.what());  // its connection has ended
  }
}

Session::Received Session::receive(Deadline deadline) {
  Received request;
  {
    const MutexLock lock(ring_->mutex);
    while (ring_->posted.empty() && !link_->breaker()->is_tripped() &&
           ring_->changed.wait_until(ring_->mutex, deadline.at())) {
    }
    link_->breaker()->check();
    request.ring_slot = ring_->posted.front();
    ring_->posted.pop_front();
  }
  ring_buffers_[*request.ring_slot]->wait_receive(deadline);
  const std::byte* memory = ring_memory_[*request.ring_slot].data();
  std::memcpy(&request.header, memory, sizeof(request.header));
  check_header(request.header);
  occupy_reply_slot(request.header);
  const auto bytes = static_cast<std::size_t>(request.header.payload_bytes);
  if (kRequestHeaderBytes + request.header.payload_bytes > options_.slot_bytes) {
    receive_bulk(request);
  } else {
    request.payload = {memory + kRequestHeaderBytes, bytes};
  }
  if ((request.header.flags & kHasChecksum) != 0 &&
      hash_bytes(text_of(request.payload)) != request.header.checksum) {
    throw NetError(NetFailure::kProtocol, "a request's bytes do not match its checksum");
  }
  return request;
}

void Session::check_header(const RequestHeader& header) const {
  if (header.magic != kMagic) throw NetError(NetFailure::kProtocol, "not a request");
  if (header.payload_bytes < 0 || header.payload_bytes > options_.max_request_bytes) {
    throw NetError(NetFailure::kProtocol, concat("a request of ", header.payload_bytes,
                                                 " bytes, allowed: ", options_.max_request_bytes));
  }
  if (header.slot >= reply_slots_.size()) {
    throw NetError(NetFailure::kProtocol,
                   concat("slot ", header.slot, " of ", reply_slots_.size()));
  }
  if (header.reply_capacity < kAnySize || header.inline_bytes < kInlineReplyBytes) {
    throw NetError(NetFailure::kProtocol, concat("room for ", header.reply_capacity, " bytes and ",
                                                 header.inline_bytes, " inline"));
  }
}

void Session::occupy_reply_slot(const RequestHeader& header) {
  ReplySlot& slot = reply_slots_[header.slot];
  const MutexLock lock(slot.mutex);
  if (slot.is_busy) {
    throw NetError(NetFailure::kProtocol, concat("two requests at once in slot ", header.slot));
  }
  slot.is_busy = true;
}

// The reading thread waits for it: everything else that the client sends comes later anyway.
void Session::receive_bulk(Received& request) {
  const std::int64_t bytes = request.header.payload_bytes;
  try {
    request.bulk = endpoint_->pool.take(bytes);
  } catch (const std::bad_alloc&) {
    throw NetError(NetFailure::kProtocol, concat("no memory for a request of ", bytes, " bytes"));
  }
  LinkBuffer buffer(link_, request.bulk.data(), bytes);
  buffer.post_receive(kClientRank, kBulkSlot + request.header.slot, 0, bytes);
  post(*std::exchange(request.ring_slot, std::nullopt));
  buffer.wait_receive(never());
  request.payload = {request.bulk.data(), static_cast<std::size_t>(bytes)};
}

}  // namespace satrap::net
