#pragma once

#include <utility>

#include <poll.h>

#include "src/net/link.h"
#include "src/net/socket.h"
#include "tests/net/fixture.h"

namespace satrap::net {

// Both ends of a TCP connection.
inline std::pair<Fd, Fd> connected_sockets() {
  const Fd listener = listen_tcp("127.0.0.1", 0);
  Fd one = connect_tcp("127.0.0.1", local_port(listener), soon());
  wait_ready(listener.get(), POLLIN, soon());
  return {std::move(one), accept_tcp(listener)};
}

// Connects the links of processes 0 and 1. Returns the descriptor of the end of 1.
inline int connect_links(Link& zero, Link& one) {
  auto [end_of_zero, end_of_one] = connected_sockets();
  const int fd = end_of_one.get();
  zero.adopt(1, std::move(end_of_zero));
  one.adopt(0, std::move(end_of_one));
  return fd;
}

}  // namespace satrap::net
