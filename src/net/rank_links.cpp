#include "satrap/net/rank_links.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"
#include "src/net/endpoint_impl.h"
#include "src/net/link.h"
#include "src/net/meeting.h"

namespace satrap::net {
namespace {

[[noreturn]] void name_late(const NetError& error, const std::string& what) {
  if (error.failure() != NetFailure::kTimeout) throw error;
  throw NetError(NetFailure::kTimeout, what + error.what());
}

}  // namespace

RankLinks::RankLinks(const Endpoint& endpoint, const MeetingPlace& place, Deadline deadline)
    : endpoint_(endpoint.impl()),
      link_(std::make_shared<Link>(endpoint_->next_device(),
                                   static_cast<int>(place.rank),
                                   static_cast<int>(place.size))) {
  for (auto& [peer, socket] : meet_ranks(*endpoint_, place, deadline)) {
    link_->adopt(peer, std::move(socket));
  }
}

RankLinks::~RankLinks() = default;

void RankLinks::close(const std::string& reason) noexcept {
  link_->close(NetFailure::kClosed, reason);
}

void RankLinks::fail(const std::string& reason) {
  link_->close(NetFailure::kProtocol, reason);
  throw link_->breaker()->error();
}

struct Transfers::Transfer {
  int peer;
  std::unique_ptr<LinkBuffer> buffer;

  void wait_receive(Deadline deadline) const {
    try {
      buffer->wait_receive(deadline);
    } catch (const NetError& error) {
      name_late(error, concat("nothing received from rank ", peer, " in time: "));
    }
  }
  void wait_send(Deadline deadline) const {
    try {
      buffer->wait_send(deadline);
    } catch (const NetError& error) {
      name_late(error, concat("rank ", peer, " took nothing in time: "));
    }
  }
};

Transfers::Transfers(const RankLinks& links, std::uint64_t slot)
    : link_(links.link_), slot_(slot) {}

Transfers::~Transfers() = default;

void Transfers::send(int peer, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto size = static_cast<std::int64_t>(bytes.size());
  // Gloo's interface takes a writable pointer for the bytes to send, but does not write to them.
  auto* memory = const_cast<std::byte*>(bytes.data());
  sends_.push_back({peer, std::make_unique<LinkBuffer>(link_, memory, size)});
  sends_.back().buffer->post_send(peer, slot_, 0, size);
}

void Transfers::receive(int peer, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  const auto size = static_cast<std::int64_t>(bytes.size());
  receives_.push_back({peer, std::make_unique<LinkBuffer>(link_, bytes.data(), size)});
  receives_.back().buffer->post_receive(peer, slot_, 0, size);
}

void Transfers::wait_for_first(int peer, Deadline deadline) {
  const auto first = std::ranges::find(receives_, peer, &Transfer::peer);
  SATRAP_CHECK(first != receives_.end(), "nothing is expected of rank ", peer);
  first->wait_receive(deadline);
}

void Transfers::wait(Deadline deadline) {
  for (const Transfer& receive : receives_) {
    if (receive.buffer->is_receiving()) receive.wait_receive(deadline);
  }
  for (const Transfer& send : sends_) send.wait_send(deadline);
}

void Transfers::clear() {
  receives_.clear();
  sends_.clear();
}

}  // namespace satrap::net
