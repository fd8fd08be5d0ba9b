#pragma once

#include <map>

#include "satrap/net/deadline.h"
#include "satrap/net/rank_links.h"
#include "src/net/endpoint_impl.h"
#include "src/net/socket.h"

namespace satrap::net {

/// Connects this rank with every other one: each listens for the ranks above it, while they meet,
/// and connects to those below it. Both ends of every socket have then proved that they know the
/// job's token and which ranks of this meeting they are; strangers who come to the port are turned
/// away. Returns a socket for each other rank. Throws NetError, with the rank that was not reached,
/// at the deadline or when it is stopped, and kRefused if this rank has been there before.
std::map<int, Fd> meet_ranks(const Endpoint::Impl& endpoint,
                             const MeetingPlace& place,
                             Deadline deadline);

}  // namespace satrap::net
