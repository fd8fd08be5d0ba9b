#include "satrap/net/sequence_filter.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"

namespace satrap::net {

SequenceFilter::SequenceFilter(std::int64_t max_clients) : max_clients_(max_clients) {
  SATRAP_CHECK(max_clients >= 1, "max_clients ", max_clients);
}

bool SequenceFilter::begin(const RequestTag& tag, Deadline deadline) {
  if (tag.client == 0 || tag.sequence == 0) {
    throw NetError(NetFailure::kProtocol, "a request that must be applied once has no number");
  }
  const MutexLock lock(mutex_);
  for (;;) {
    Client& client = client_of(tag);
    client.last_use = ++num_uses_;
    if (tag.sequence <= client.all_up_to || client.beyond.contains(tag.sequence)) return false;
    if (client.under_way.insert(tag.sequence).second) return true;
    if (!changed_.wait_until(mutex_, deadline.at()) && deadline.has_passed()) {
      throw NetError(NetFailure::kTimeout, concat("request ", tag.sequence, " of rank ", tag.rank,
                                                  " is still being applied"));
    }
  }
}

void SequenceFilter::finish(const RequestTag& tag) {
  const MutexLock lock(mutex_);
  Client& client = client_of(tag);
  SATRAP_CHECK(client.under_way.erase(tag.sequence) == 1, "request ", tag.sequence,
               " was not begun");
  client.beyond.insert(tag.sequence);
  while (!client.beyond.empty() && *client.beyond.begin() == client.all_up_to + 1) {
    ++client.all_up_to;
    client.beyond.erase(client.beyond.begin());
  }
  changed_.notify_all();
}

void SequenceFilter::abandon(const RequestTag& tag) {
  const MutexLock lock(mutex_);
  SATRAP_CHECK(client_of(tag).under_way.erase(tag.sequence) == 1, "request ", tag.sequence,
               " was not begun");
  changed_.notify_all();
}

void SequenceFilter::forget(std::uint64_t client) {
  const MutexLock lock(mutex_);
  const auto found = clients_.find(client);
  if (found != clients_.end() && found->second.under_way.empty()) clients_.erase(found);
}

std::uint64_t SequenceFilter::applied_up_to(std::uint64_t client) const {
  const MutexLock lock(mutex_);
  const auto found = clients_.find(client);
  return found == clients_.end() ? 0 : found->second.all_up_to;
}

std::int64_t SequenceFilter::num_clients() const {
  const MutexLock lock(mutex_);
  return static_cast<std::int64_t>(clients_.size());
}

SequenceFilter::Client& SequenceFilter::client_of(const RequestTag& tag) {
  const auto found = clients_.find(tag.client);
  if (found != clients_.end()) return found->second;
  make_room();
  return clients_[tag.client];
}

void SequenceFilter::make_room() {
  if (static_cast<std::int64_t>(clients_.size()) < max_clients_) return;
  auto oldest = clients_.end();
  for (auto it = clients_.begin(); it != clients_.end(); ++it) {
    if (!it->second.under_way.empty()) continue;
    if (oldest == clients_.end() || it->second.last_use < oldest->second.last_use) oldest = it;
  }
  if (oldest != clients_.end()) clients_.erase(oldest);
}

}  // namespace satrap::net
