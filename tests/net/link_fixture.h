#pragma once

#include <string>
#include <thread>
#include <vector>

#include <gloo/transport/tcp/address.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "src/net/link.h"
#include "tests/net/fixture.h"

namespace satrap::net {

inline in_port_t port_of(const sockaddr_storage& address) {
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

inline in_port_t port_of(const std::string& gloo_address) {
  return port_of(
      gloo::transport::tcp::Address(std::vector<char>(gloo_address.begin(), gloo_address.end()))
          .getSockaddr());
}

// Connects the links of processes 0 and 1. Both have an address before either connects: connecting
// a pair changes its address.
inline void connect_links(Link& zero, Link& one) {
  const std::string address_0 = zero.mesh().address_for(1), address_1 = one.mesh().address_for(0);
  std::thread connecting([&] { one.mesh().connect(0, address_0); });
  zero.mesh().connect(1, address_1);
  connecting.join();
}

}  // namespace satrap::net
