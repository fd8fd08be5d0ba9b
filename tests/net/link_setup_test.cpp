// Faults while links are made and closed; see link_test.cpp.
#include <csignal>
#include <cstring>

#include <netinet/in.h>
#include <sys/socket.h>

#include "src/net/socket.h"
#include "tests/net/link_fixture.h"

namespace satrap::net {
namespace {

// I, while this side closes: the event thread must not wait for a lock whose owner waits for it.
TEST(LinkSetup, CaseI_OversizedMessageWhileTheLinkIsClosedDoesNotDeadlock) {
  signal(SIGPIPE, SIG_IGN);
  const auto our_device = make_gloo_device(), their_device = make_gloo_device();
  for (int round = 0; round < 60; ++round) {
    const auto link = std::make_shared<Link>(our_device, 0, 2);
    const auto peer = std::make_shared<Link>(their_device, 1, 2);
    connect_links(*link, *peer);
    // The event thread is still busy with the first message when the second is read: this thread
    // requests the lock in between.
    Bytes in(1 << 20), out(1 << 20, std::byte{7});
    const auto first = peer->mesh().make_buffer(out.data(), 1 << 20);
    const auto second = peer->mesh().make_buffer(out.data(), 128);
    LinkBuffer large(link, in.data(), 1 << 20), small(link, in.data(), 64);
    large.post_receive(1, 1, 0, 1 << 20);
    small.post_receive(1, 2, 0, 64);
    first->send(0, 1);
    second->send(0, 2);
    ASSERT_TRUE(eventually([&] { return peek(in.data()) == std::byte{7}; }));
    for (int i = 0; i < round; ++i) static_cast<void>(peek(in.data()));
    link->close(NetFailure::kClosed, "test over");
    peer->close(NetFailure::kClosed, "test over");
  }
}

// The system may give the port of a server that is gone to the end that connects to it.
TEST(LinkSetup, AnEndThatIsConnectedToItselfIsNoConnection) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const Fd end(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(end.get(), any, sizeof(address)), 0);
  address.sin_port = htons(static_cast<std::uint16_t>(local_port(end)));
  ASSERT_EQ(connect(end.get(), any, sizeof(address)), 0);
  EXPECT_TRUE(is_connected_to_itself(end));

  const auto [one, other] = connected_sockets();
  EXPECT_FALSE(is_connected_to_itself(one));
  EXPECT_FALSE(is_connected_to_itself(other));
}

// Whoever reached a port at which Gloo listens could take the place of the peer that it waits for.
TEST(LinkSetup, GlooListensNowhere) {
  const auto device = make_gloo_device();
  const Link made(device, 0, 3);
  for (int fd = 0; fd < 1024; ++fd) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0) {
      EXPECT_EQ(listens, 0) << "descriptor " << fd;
    }
  }
}

TEST(LinkSetup, ALinkThatWasNeverConnectedIsClosedWithoutAWait) {
  const auto device = make_gloo_device();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) {
    Link link(device, 0, 3);
    link.close(NetFailure::kClosed, "not needed");
    auto [ours, theirs] = connected_sockets();
    EXPECT_EQ(failure_of([&] { link.adopt(1, std::move(ours)); }), NetFailure::kClosed);
  }
  EXPECT_LT(seconds_since(begin), 10.0);
}

// Bytes that are no Gloo message, from a peer that has proved that it knows the token.
TEST(LinkSetup, GarbageFailsThatConnectionOnly) {
  signal(SIGPIPE, SIG_IGN);
  const auto device = make_gloo_device();
  const auto well = std::make_shared<Link>(device, 0, 2);
  const auto well_peer = std::make_shared<Link>(make_gloo_device(), 1, 2);
  connect_links(*well, *well_peer);
  for (const std::size_t length : {std::size_t{10}, std::size_t{48}, std::size_t{100'000}}) {
    Link link(device, 0, 2);
    auto [ours, theirs] = connected_sockets();
    link.adopt(1, std::move(ours));
    // An opcode "unbound data" for a slot that was never posted, or noise; then the end.
    Bytes noise = some_bytes(length);
    if (length == 48) {
      const std::uint64_t words[6] = {48 + 8, 1, 77, 0, 8, 0};
      std::memcpy(noise.data(), words, 48);
    }
    ASSERT_EQ(send(theirs.get(), noise.data(), noise.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(noise.size()));
    shutdown(theirs.get(), SHUT_WR);
    EXPECT_TRUE(eventually([&] { return link.breaker()->is_tripped(); })) << length;
  }
  Bytes in(100), out = some_bytes(100);
  LinkBuffer receiving(well, in.data(), 100), sending(well_peer, out.data(), 100);
  receiving.post_receive(1, 1, 0, 100);
  sending.post_send(0, 1, 0, 100);
  sending.wait_send(soon());
  receiving.wait_receive(soon());
  EXPECT_EQ(in, out);
}

// L: in a mesh of three, the death of one ends the waits of both others, also those for each other.
TEST(LinkSetup, CaseL_DeathOfOneOfThreeEndsAllWaits) {
  signal(SIGPIPE, SIG_IGN);
  std::vector<std::shared_ptr<Link>> links;
  for (int rank = 0; rank < 3; ++rank) {
    links.push_back(std::make_shared<Link>(make_gloo_device(), rank, 3));
  }
  for (int low = 0; low < 3; ++low) {
    for (int high = low + 1; high < 3; ++high) {
      auto [end_of_low, end_of_high] = connected_sockets();
      links[static_cast<std::size_t>(low)]->adopt(high, std::move(end_of_low));
      links[static_cast<std::size_t>(high)]->adopt(low, std::move(end_of_high));
    }
  }
  Bytes memory(64);
  LinkBuffer buffer(links[0], memory.data(), 64);
  buffer.post_receive(1, 1, 0, 64);  // from 1, which still runs
  links[2]->mesh().close();
  EXPECT_EQ(failure_of([&] { buffer.wait_receive(soon()); }), NetFailure::kClosed);
  EXPECT_TRUE(eventually([&] { return links[1]->breaker()->is_tripped(); }));
  for (const auto& link : links) link->close(NetFailure::kClosed, "test over");
}

}  // namespace
}  // namespace satrap::net
