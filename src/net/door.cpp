#include "src/net/door.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"

namespace satrap::net {
namespace {

constexpr int kMaxAcceptedAtOnce = 64;
constexpr std::int64_t kRestMs = 100;
constexpr std::int64_t kReportMs = 10'000;

}  // namespace

Door::Door(Fd listener, DoorOptions options)
    : options_(std::move(options)), listener_(std::move(listener)), refusals_(options_.name) {}

void Door::watch(std::vector<pollfd>& fds) {
  first_ = fds.size();
  fds.push_back({rests_until_.has_passed() ? listener_.get() : -1, POLLIN, 0});
  for (const Visitor& visitor : strangers_) fds.push_back({visitor.fd(), POLLIN, 0});
}

Deadline Door::next() const {
  Deadline next = Deadline::after_ms(kReportMs);
  const auto consider = [&next](Deadline other) {
    next = Deadline(std::min(next.at(), other.at()));
  };
  if (!rests_until_.has_passed()) consider(rests_until_);
  for (const Visitor& visitor : strangers_) consider(visitor.deadline());
  return next;
}

void Door::serve(const std::vector<pollfd>& fds, const Enter& enter) {
  std::size_t i = first_ + 1;
  for (auto visitor = strangers_.begin(); visitor != strangers_.end(); ++i) {
    const auto current = visitor++;
    serve(current, fds[i].revents != 0, enter);
  }
  if ((fds[first_].revents & POLLIN) != 0) accept();
  refusals_.report_if_due();
}

void Door::serve(std::list<Visitor>::iterator visitor, bool is_ready, const Enter& enter) {
  try {
    if (is_ready && visitor->advance(options_.token)) {
      enter(*visitor);
    } else if (visitor->deadline().has_passed()) {
      throw NetError(NetFailure::kTimeout, "it did not introduce itself in time");
    } else {
      return;
    }
  } catch (const NetError& error) {
    if (error.failure() != NetFailure::kClosed) refusals_.add(visitor->peer(), error.what());
  } catch (const std::exception& error) {
    refusals_.add(visitor->peer(), error.what());
  }
  strangers_.erase(visitor);
}

void Door::accept() {
  for (int i = 0; i < kMaxAcceptedAtOnce; ++i) {
    try {
      Fd fd = accept_tcp(listener_);
      if (!fd) return;
      if (strangers_.size() >= kMaxStrangers) strangers_.pop_front();
      strangers_.emplace_back(std::move(fd), options_.magic,
                              Deadline::after_ms(options_.timeout_ms));
    } catch (const OutOfDescriptors& error) {
      if (strangers_.empty()) {
        refusals_.add("everybody for a moment", error.what());
        rests_until_ = Deadline::after_ms(kRestMs);
        return;
      }
      refusals_.add(strangers_.front().peer(), error.what());
      strangers_.pop_front();
    }
  }
}

}  // namespace satrap::net
