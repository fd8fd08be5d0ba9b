// Faults while links are made and closed; see link_test.cpp.
#include <csignal>
#include <cstring>
#include <map>

#include "src/net/socket.h"
#include "tests/net/link_fixture.h"

namespace satrap::net {
namespace {

// I, while this side closes: the event thread must not wait for a lock whose owner waits for it.
TEST(LinkSetup, CaseI_OversizedMessageWhileTheLinkIsClosedDoesNotDeadlock) {
  signal(SIGPIPE, SIG_IGN);
  const auto our_device = make_gloo_device("127.0.0.1"),
             their_device = make_gloo_device("127.0.0.1");
  for (int round = 0; round < 60; ++round) {
    const auto link = std::make_shared<Link>(our_device, 0, 2, soon());
    const auto peer = std::make_shared<Link>(their_device, 1, 2, soon());
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

// The first bytes that any client of the port sends: nothing, or, for a Gloo with one port for all
// connections of a device (since 2023), the number of the connection.
Bytes greeting_of(const std::string& gloo_address) {
  using gloo::transport::tcp::Address;
  const Address address(std::vector<char>(gloo_address.begin(), gloo_address.end()));
  const auto number = address.getSeq();
  if (number == Address::kSequenceNumberUnset) return {};
  const auto bytes = std::as_bytes(std::span(&number, 1));
  return {bytes.begin(), bytes.end()};
}

// Bytes that are no Gloo message, from a client that reached the port in time (and has seen the
// address, if a connection needs a number).
TEST(LinkSetup, GarbageOnGloosPortFailsThatConnectionOnly) {
  signal(SIGPIPE, SIG_IGN);
  const auto device = make_gloo_device("127.0.0.1");
  const auto well = std::make_shared<Link>(device, 0, 2, soon());
  const auto well_peer = std::make_shared<Link>(make_gloo_device("127.0.0.1"), 1, 2, soon());
  connect_links(*well, *well_peer);
  for (const std::size_t length : {std::size_t{10}, std::size_t{48}, std::size_t{100'000}}) {
    Link link(device, 0, 2, Deadline::after_ms(1500)), absent(device, 1, 2, soon());
    const std::string address = link.mesh().address_for(1);
    const Fd stranger = connect_tcp("127.0.0.1", port_of(address), soon());
    // An opcode "unbound data" for a slot that was never posted, or noise; then the end.
    Bytes noise = some_bytes(length);
    if (length == 48) {
      const std::uint64_t words[6] = {48 + 8, 1, 77, 0, 8, 0};
      std::memcpy(noise.data(), words, 48);
    }
    const Bytes greeting = greeting_of(address);
    noise.insert(noise.begin(), greeting.begin(), greeting.end());
    ASSERT_EQ(send(stranger.get(), noise.data(), noise.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(noise.size()));
    shutdown(stranger.get(), SHUT_WR);
    if (!greeting.empty()) {
      // Such a Gloo gives connections to the pairs that wait for them, to the first of two pairs of
      // a device; it may accept one before it reads the garbage.
      static_cast<void>(failure_of([&] { link.connect(1, absent.mesh().address_for(0)); }));
    }
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

TEST(LinkSetup, PeerThatNeverComesEndsAtTheDeadline) {
  Link link(make_gloo_device("127.0.0.1"), 0, 2, Deadline::after_ms(100));
  std::string address;
  {
    Link gone(make_gloo_device("127.0.0.1"), 1, 2, soon());
    address = gone.mesh().address_for(0);
  }
  const auto failure = failure_of([&] { link.mesh().connect(1, address); });
  EXPECT_TRUE(failure == NetFailure::kTimeout || failure == NetFailure::kClosed);
}

// A Gloo whose device connects for its pairs would give the connection to the destroyed pair.
TEST(LinkSetup, APeerThatComesAfterTheDeadlineFindsNobody) {
  signal(SIGPIPE, SIG_IGN);
  const auto device = make_gloo_device("127.0.0.1");
  for (int i = 0; i < 3; ++i) {
    std::string address;
    auto waiting = std::make_unique<Link>(device, 0, 2, Deadline::after_ms(100));
    Link late(device, 1, 2, Deadline::after_ms(2000));  // on one device the later one connects
    address = waiting->mesh().address_for(1);
    failure_of([&] { waiting->mesh().connect(1, late.mesh().address_for(0)); });
    waiting.reset();
    // With a Gloo whose pairs listen themselves, no pair listens any more.
    const auto failure = failure_of([&] { late.mesh().connect(0, address); });
    EXPECT_TRUE(failure || eventually([&] { return late.breaker()->is_tripped(); }));
  }
  const auto well = std::make_shared<Link>(device, 0, 2, soon());
  const auto well_peer = std::make_shared<Link>(device, 1, 2, soon());
  connect_links(*well, *well_peer);
}

// L: in a mesh of three, the death of one ends the waits of both others, also those for each other.
TEST(LinkSetup, CaseL_DeathOfOneOfThreeEndsAllWaits) {
  signal(SIGPIPE, SIG_IGN);
  std::vector<std::shared_ptr<Link>> links;
  for (int rank = 0; rank < 3; ++rank) {
    links.push_back(std::make_shared<Link>(make_gloo_device("127.0.0.1"), rank, 3, soon()));
  }
  std::map<std::pair<int, int>, std::string> addresses;  // by owner and peer
  for (int of = 0; of < 3; ++of) {
    for (int to = 0; to < 3; ++to) {
      if (of != to)
        addresses[{of, to}] = links[static_cast<std::size_t>(of)]->mesh().address_for(to);
    }
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == rank) continue;
        links[static_cast<std::size_t>(rank)]->mesh().connect(peer, addresses.at({peer, rank}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
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
