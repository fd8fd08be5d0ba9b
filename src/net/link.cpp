#include "src/net/link.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string_view>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::net {
namespace {

// A deadline that passes in one wait also ends all other waits of Gloo's context and its
// connections, and any of these may be noticed first.
NetFailure failure_of(std::string_view reason) {
  return is_gloo_timeout(reason) ? NetFailure::kTimeout : NetFailure::kClosed;
}

}  // namespace

void Breaker::trip(NetFailure failure, const std::string& reason) {
  {
    const MutexLock lock(mutex_);
    if (is_tripped_) return;
    failure_ = failure;
    reason_ = reason;
    is_tripped_ = true;
    for (GlooBuffer* buffer : buffers_) {
      buffer->abortWaitRecv();
      buffer->abortWaitSend();
    }
  }
  if (on_trip_) on_trip_();
}

NetError Breaker::error() const {
  const MutexLock lock(mutex_);
  return {failure_, reason_};
}

void Breaker::check() const {
  if (is_tripped()) throw error();
}

void Breaker::add(GlooBuffer* buffer) {
  const MutexLock lock(mutex_);
  buffers_.push_back(buffer);
  if (is_tripped_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

void Breaker::remove(GlooBuffer* buffer) {
  const MutexLock lock(mutex_);
  const auto found = std::find(buffers_.rbegin(), buffers_.rend(), buffer);
  *found = buffers_.back();
  buffers_.pop_back();
}

Link::Link(std::shared_ptr<GlooDevice> device, int rank, int size, std::function<void()> on_trip)
    : breaker_(std::make_shared<Breaker>(std::move(on_trip))),
      mesh_(std::move(device),
            rank,
            size,
            [breaker = breaker_](int peer, const std::string& reason) {
              breaker->trip(failure_of(reason), concat("peer ", peer, ": ", reason));
            }) {}

void Link::adopt(int peer, Fd socket) {
  breaker_->check();
  try {
    mesh_.adopt(peer, std::move(socket));
  } catch (const NetError&) {
    breaker_->check();  // throws the reason, not its effect on Gloo
    throw;
  }
}

void Link::close(NetFailure failure, const std::string& reason) noexcept {
  breaker_->trip(failure, reason);
  mesh_.close();
}

LinkBuffer::LinkBuffer(std::shared_ptr<Link> link, void* memory, std::int64_t bytes)
    : link_(std::move(link)), buffer_(link_->mesh().make_buffer(memory, bytes)) {
  link_->breaker()->add(buffer_.get());
}

LinkBuffer::~LinkBuffer() {
  if (is_receiving_ || is_sending_) {
    link_->close(NetFailure::kClosed, "a transfer was cancelled");
  }
  link_->breaker()->remove(buffer_.get());
}

void LinkBuffer::post_receive(int peer,
                              std::uint64_t slot,
                              std::int64_t offset,
                              std::int64_t bytes) {
  link_->breaker()->check();
  SATRAP_CHECK(!is_receiving_, "slot ", slot, ": a receive is already posted");
  is_receiving_ = true;  // also if it throws: Gloo's state is then unknown
  try {
    buffer_->recv(peer, slot, static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
  } catch (const std::exception& error) {
    link_->breaker()->trip(NetFailure::kClosed, gloo_reason(error.what()));
    throw link_->breaker()->error();
  }
}

void LinkBuffer::post_send(int peer, std::uint64_t slot, std::int64_t offset, std::int64_t bytes) {
  link_->breaker()->check();
  SATRAP_CHECK(!is_sending_, "slot ", slot, ": a send is already in progress");
  is_sending_ = true;
  try {
    buffer_->send(peer, slot, static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
  } catch (const std::exception& error) {
    link_->breaker()->trip(NetFailure::kClosed, gloo_reason(error.what()));
    throw link_->breaker()->error();
  }
}

// The wait that timed out reports a timeout, whatever reason was seen first elsewhere: the peer may
// have noticed, and hung up, before this thread ran again.
void LinkBuffer::fail(Deadline deadline) const {
  const NetError error = link_->breaker()->error();
  if (error.failure() == NetFailure::kTimeout || !deadline.has_passed()) throw error;
  throw NetError(NetFailure::kTimeout, concat("a deadline passed; then: ", error.what()));
}

/// `wait` waits for the given time; returns whether it ended.
template <class Wait>
void LinkBuffer::finish(bool& is_under_way, Deadline deadline, Wait&& wait) {
  link_->breaker()->check();  // Gloo's buffers forget an abort after the first wait that it ends
  try {
    if (wait(std::chrono::milliseconds(deadline.remaining_ms()))) {
      is_under_way = false;
      return;
    }
  } catch (const std::exception& error) {
    link_->breaker()->trip(failure_of(error.what()), gloo_reason(error.what()));
  }
  fail(deadline);
}

void LinkBuffer::wait_receive(Deadline deadline) {
  SATRAP_CHECK(is_receiving_, "no receive is posted");
  finish(is_receiving_, deadline,
         [&](auto timeout) { return buffer_->waitRecv(nullptr, timeout); });
}

void LinkBuffer::wait_send(Deadline deadline) {
  SATRAP_CHECK(is_sending_, "no send is in progress");
  finish(is_sending_, deadline, [&](auto timeout) { return buffer_->waitSend(nullptr, timeout); });
}

}  // namespace satrap::net
