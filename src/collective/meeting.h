#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "satrap/net/deadline.h"
#include "satrap/net/store.h"
#include "src/net/endpoint_impl.h"
#include "src/net/socket.h"

namespace satrap::collective {

/// Where and how a rank meets the others.
struct MeetingPlace {
  net::Store& store;
  std::string key;  // in the store; used once
  std::int64_t rank = 0;
  std::int64_t size = 1;
};

/// Connects this rank with every other one: each listens for the ranks above it, while they meet,
/// and connects to those below it. Both ends of every socket have then proved that they know the
/// job's token and which ranks of this meeting they are; strangers who come to the port are turned
/// away. Returns a socket for each other rank. Throws NetError, with the rank that was not reached,
/// at the deadline or when it is stopped, and kRefused if this rank has been there before.
std::map<int, net::Fd> meet_ranks(const net::Endpoint::Impl& endpoint,
                                  const MeetingPlace& place,
                                  net::Deadline deadline);

}  // namespace satrap::collective
