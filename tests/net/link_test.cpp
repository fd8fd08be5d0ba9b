// What Gloo does to a process whose peer is broken, dead or hostile, met by Link, one test per case
// measured on Gloo as it comes (the letters are those of src/net/README.md). Peers are raw Gloo.
#include "src/net/link.h"

#include <csignal>
#include <cstring>
#include <map>
#include <stdexcept>

#include <gloo/transport/tcp/address.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/net/socket.h"
#include "tests/net/fixture.h"

namespace satrap::net {
namespace {

// Far more than the kernel takes for a socket: it stays under way until somebody reads it.
constexpr std::size_t kManyBytes = 128 << 20;

// A range of addresses that is the same 16 MiB again and again: a message that takes seconds, so
// that it is under way for as long as a busy machine may take to notice, and little memory.
class EndlessMemory {
 public:
  EndlessMemory() {
    const Fd file(memfd_create("endless", MFD_CLOEXEC));
    if (!file || ftruncate(file.get(), kPeriod) != 0) throw std::runtime_error("memfd_create");
    data_ = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED) throw std::runtime_error("mmap");
    for (std::int64_t i = 0; i < kBytes; i += kPeriod) {
      if (mmap(data() + i, kPeriod, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(),
               0) == MAP_FAILED) {
        throw std::runtime_error("mmap");
      }
    }
  }
  ~EndlessMemory() { munmap(data_, kBytes); }
  EndlessMemory(const EndlessMemory&) = delete;
  EndlessMemory& operator=(const EndlessMemory&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  void fill(std::byte value) const { std::memset(data_, static_cast<int>(value), kPeriod); }
  static constexpr std::int64_t size() { return kBytes; }

 private:
  static constexpr std::int64_t kPeriod = 16 << 20, kBytes = 1024 * kPeriod;
  void* data_ = nullptr;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

in_port_t port_of(const sockaddr_storage& address) {
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

in_port_t port_of(const std::string& gloo_address) {
  return port_of(
      gloo::transport::tcp::Address(std::vector<char>(gloo_address.begin(), gloo_address.end()))
          .getSockaddr());
}

// Connects the links of processes 0 and 1. Both have an address before either connects: a pair that
// is connected has another one.
void connect_links(Link& zero, Link& one) {
  const std::string address_0 = zero.mesh().address_for(1), address_1 = one.mesh().address_for(0);
  std::thread connecting([&] { one.mesh().connect(0, address_0); });
  zero.mesh().connect(1, address_1);
  connecting.join();
}

class LinkTest : public testing::Test {
 protected:
  LinkTest() {
    signal(SIGPIPE, SIG_IGN);  // as an Endpoint does
    our_port_ = port_of(link_->mesh().address_for(1));
    their_port_ = port_of(peer_->mesh().address_for(0));
    connect_links(*link_, *peer_);
  }
  ~LinkTest() override { end(); }

  // Before the memory of transfers goes that nobody has waited for.
  void end() {
    link_->close(NetFailure::kClosed, "test over");
    peer_->close(NetFailure::kClosed, "test over");
  }

  std::unique_ptr<LinkBuffer> ours(Bytes& bytes) {
    return std::make_unique<LinkBuffer>(link_, bytes.data(),
                                        static_cast<std::int64_t>(bytes.size()));
  }
  std::unique_ptr<GlooBuffer> theirs(Bytes& bytes) {
    return peer_->mesh().make_buffer(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  }

  // The peer's end of the connection goes, as when its process dies. Its close() would wait for its
  // event thread, which may be busy with a message until that has come whole.
  void cut_peer() const {
    constexpr int kMaxFd = 1024;
    int num_cut = 0;
    for (int fd = 0; fd < kMaxFd; ++fd) {
      sockaddr_storage here{}, there{};
      socklen_t size = sizeof(here);
      if (getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) != 0) continue;
      size = sizeof(there);
      if (getpeername(fd, reinterpret_cast<sockaddr*>(&there), &size) != 0) continue;
      // One of the two has listened, and the other has connected to its port.
      if (port_of(here) != their_port_ && port_of(there) != our_port_) continue;
      if (shutdown(fd, SHUT_RDWR) == 0) ++num_cut;
    }
    ASSERT_EQ(num_cut, 1);
  }

  void expect_down(const char* reason) {
    ASSERT_TRUE(eventually([&] { return link_->breaker()->is_tripped(); }));
    EXPECT_NE(std::string(link_->breaker()->error().what()).find(reason), std::string::npos)
        << link_->breaker()->error().what();
  }

  std::shared_ptr<Link> link_ = std::make_shared<Link>(make_gloo_device("127.0.0.1"), 0, 2, soon());
  std::shared_ptr<Link> peer_ = std::make_shared<Link>(make_gloo_device("127.0.0.1"), 1, 2, soon());
  in_port_t our_port_ = 0, their_port_ = 0;  // that they have listened at
};

TEST_F(LinkTest, MessagesArriveInOrderIntoThePostedMemory) {
  Bytes first = some_bytes(100, 1), second = some_bytes(50, 2), a(100), b(100);
  const auto in_a = ours(a), in_b = ours(b);
  in_a->post_receive(1, 5, 0, 100);
  in_b->post_receive(1, 5, 0, 100);
  const auto out_first = theirs(first), out_second = theirs(second);
  out_first->send(0, 5);
  out_second->send(0, 5);
  in_b->wait_receive(soon());
  in_a->wait_receive(soon());
  out_first->waitSend();
  out_second->waitSend();
  EXPECT_EQ(a, first);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), b.begin()));
}

// A, B: posted receive or unmatched send, peer goes.
TEST_F(LinkTest, CaseAB_WaitsEndWhenThePeerCloses) {
  Bytes in(64), out(64);
  const auto receiving = ours(in), sending = ours(out);
  receiving->post_receive(1, 1, 0, 64);
  sending->post_send(1, 2, 0, 64);
  peer_->mesh().close();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(failure_of([&] { receiving->wait_receive(soon()); }), NetFailure::kClosed);
  EXPECT_EQ(failure_of([&] { sending->wait_send(soon()); }), NetFailure::kClosed);
  EXPECT_LT(seconds_since(begin), 10.0);
}

// C: Gloo leaves the sender waiting for its whole timeout when the peer goes while bytes are
// moving.
TEST_F(LinkTest, CaseC_SendUnderWayEndsWhenThePeerCloses) {
  const EndlessMemory out, in;
  out.fill(std::byte{7});
  auto receiving = peer_->mesh().make_buffer(in.data(), in.size());
  receiving->recv(0, 1);
  const auto sending = std::make_unique<LinkBuffer>(link_, out.data(), out.size());
  sending->post_send(1, 1, 0, out.size());
  ASSERT_TRUE(eventually([&] { return peek(in.data()) == std::byte{7}; }));
  cut_peer();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(failure_of([&] { sending->wait_send(Deadline::after_ms(60'000)); }),
            NetFailure::kClosed);
  EXPECT_LT(seconds_since(begin), 20.0);
  end();
}

// D: likewise the receiver. Here the link is cut in mid-message: the sender closes after a part.
TEST_F(LinkTest, CaseD_ReceiveUnderWayEndsWhenThePeerCloses) {
  const EndlessMemory out, in;
  out.fill(std::byte{7});
  const auto receiving = std::make_unique<LinkBuffer>(link_, in.data(), in.size());
  receiving->post_receive(1, 1, 0, in.size());
  auto sending = peer_->mesh().make_buffer(out.data(), out.size());
  sending->send(0, 1);
  ASSERT_TRUE(eventually([&] { return peek(in.data()) == std::byte{7}; }));
  cut_peer();
  EXPECT_EQ(failure_of([&] { receiving->wait_receive(Deadline::after_ms(60'000)); }),
            NetFailure::kClosed);
  end();
}

// F: a hung peer looks like a slow one; the deadline decides, and takes the link with it.
TEST_F(LinkTest, CaseF_DeadlineBreaksTheLinkAndWakesEverybody) {
  Bytes a(64), b(64);
  const auto first = ours(a), second = ours(b);
  first->post_receive(1, 1, 0, 64);
  second->post_receive(1, 2, 0, 64);
  std::optional<NetFailure> other;
  std::thread waiting([&] { other = failure_of([&] { second->wait_receive(soon()); }); });
  EXPECT_EQ(failure_of([&] { first->wait_receive(Deadline::after_ms(30)); }), NetFailure::kTimeout);
  waiting.join();
  EXPECT_EQ(other, NetFailure::kTimeout);
  EXPECT_EQ(failure_of([&] { second->post_send(1, 1, 0, 64); }), NetFailure::kTimeout);
}

// I: Gloo calls std::terminate when a peer sends more than the posted receive has room for.
TEST_F(LinkTest, CaseI_OversizedMessageClosesTheLinkAndWritesNothing) {
  Bytes in(64), behind(64);
  const auto receiving = ours(in);
  receiving->post_receive(1, 1, 0, 64);
  Bytes out(128, std::byte{7});
  const auto sending = theirs(out);
  sending->send(0, 1);
  EXPECT_EQ(failure_of([&] { receiving->wait_receive(soon()); }), NetFailure::kClosed);
  expect_down("broke Gloo's protocol");
  EXPECT_EQ(in, Bytes(64)) << "no byte of it was taken";
  end();
}

// I, while this side closes: the event thread must not wait for a lock whose owner waits for it.
TEST(LinkSetup, CaseI_OversizedMessageWhileTheLinkIsClosedDoesNotDeadlock) {
  signal(SIGPIPE, SIG_IGN);
  const auto our_device = make_gloo_device("127.0.0.1"),
             their_device = make_gloo_device("127.0.0.1");
  for (int round = 0; round < 60; ++round) {
    const auto link = std::make_shared<Link>(our_device, 0, 2, soon());
    const auto peer = std::make_shared<Link>(their_device, 1, 2, soon());
    connect_links(*link, *peer);
    // The event thread is still busy with the first when the second is looked at: this thread comes
    // to wait for the lock in between.
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

// J: Gloo's event thread spins for ever on a message whose buffer is gone.
TEST_F(LinkTest, CaseJ_BufferDestroyedBehindOurBackClosesTheLinkInsteadOfSpinning) {
  Bytes in(64), out(64);
  link_->mesh().make_buffer(in.data(), 64)->recv(1, 1);  // posted, and destroyed at once
  const auto sending = theirs(out);
  sending->send(0, 1);
  expect_down("a buffer that is not there");
  const double cpu = cpu_seconds();
  const auto begin = std::chrono::steady_clock::now();
  while (seconds_since(begin) < 0.3) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(cpu_seconds() - cpu, 0.25);
  end();
}

TEST_F(LinkTest, CaseJ_DestroyingOurBufferWithAPostedReceiveClosesTheLinkFirst) {
  auto in = std::make_unique<Bytes>(64);
  ours(*in)->post_receive(1, 1, 0, 64);
  EXPECT_TRUE(link_->breaker()->is_tripped());
  in.reset();  // sanitizers see a write that comes after all
  EXPECT_TRUE(eventually([&] { return peer_->breaker()->is_tripped(); }));
  Bytes out(64);
  const auto sending = theirs(out);
  EXPECT_ANY_THROW(sending->send(0, 1));
  end();
}

// The same event then has data to read, from a connection that is closed already.
TEST_F(LinkTest, CaseJ_SendBufferDestroyedBehindOurBackClosesTheLinkInsteadOfSpinning) {
  Bytes in(kManyBytes), out(kManyBytes), back_in(kManyBytes), back_out(kManyBytes);
  const auto receiving = theirs(in), sending = theirs(back_out);
  const auto receiving_back = ours(back_in);
  receiving_back->post_receive(1, 2, 0, static_cast<std::int64_t>(back_in.size()));
  sending->send(0, 2);
  receiving->recv(0, 1);
  link_->mesh().make_buffer(out.data(), static_cast<std::int64_t>(out.size()))->send(1, 1);
  expect_down("destroyed while it was sent");
  end();
}

// What whoever connects to the port says first: nothing, or, to a Gloo with one port for all
// connections of a device (since 2023), the number of the connection that is meant.
Bytes greeting_of(const std::string& gloo_address) {
  using gloo::transport::tcp::Address;
  const Address address(std::vector<char>(gloo_address.begin(), gloo_address.end()));
  const auto number = address.getSeq();
  if (number == Address::kSequenceNumberUnset) return {};
  const auto bytes = std::as_bytes(std::span(&number, 1));
  return {bytes.begin(), bytes.end()};
}

// Bytes that are no Gloo message at all, from somebody who reached the port in time (and has seen
// the address, where that takes a number).
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
    // An opcode "unbound data" for a slot that nobody has posted, or noise; then the end.
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
      // Such a Gloo hands connections out to those who wait for them, of two pairs of a device the
      // first; it may be let in before its garbage is read.
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

// A Gloo whose device connects for its pairs would hand the connection to the pair that is gone.
TEST(LinkSetup, APeerThatComesAfterTheDeadlineFindsNobody) {
  signal(SIGPIPE, SIG_IGN);
  const auto device = make_gloo_device("127.0.0.1");
  for (int i = 0; i < 3; ++i) {
    std::string address;
    auto waiting = std::make_unique<Link>(device, 0, 2, Deadline::after_ms(100));
    Link late(device, 1, 2, Deadline::after_ms(2000));  // of two on one device the later one calls
    address = waiting->mesh().address_for(1);
    failure_of([&] { waiting->mesh().connect(1, late.mesh().address_for(0)); });
    waiting.reset();
    try {
      late.mesh().connect(0, address);
      EXPECT_TRUE(eventually([&] { return late.breaker()->is_tripped(); }));
    } catch (const NetError&) {
      // Of a Gloo whose pairs listen for themselves nobody does any more.
    }
  }
  const auto well = std::make_shared<Link>(device, 0, 2, soon());
  const auto well_peer = std::make_shared<Link>(device, 1, 2, soon());
  connect_links(*well, *well_peer);
}

// L: in a mesh of three, the death of one ends the waits of both others, for each other too.
TEST(LinkSetup, CaseL_DeathOfOneOfThreeEndsAllWaits) {
  signal(SIGPIPE, SIG_IGN);
  std::vector<std::shared_ptr<Link>> links;
  for (int rank = 0; rank < 3; ++rank) {
    links.push_back(std::make_shared<Link>(make_gloo_device("127.0.0.1"), rank, 3, soon()));
  }
  std::map<std::pair<int, int>, std::string> addresses;  // of whom, for whom
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
  buffer.post_receive(1, 1, 0, 64);  // from 1, which is well
  links[2]->mesh().close();
  EXPECT_EQ(failure_of([&] { buffer.wait_receive(soon()); }), NetFailure::kClosed);
  EXPECT_TRUE(eventually([&] { return links[1]->breaker()->is_tripped(); }));
  for (const auto& link : links) link->close(NetFailure::kClosed, "test over");
}

}  // namespace
}  // namespace satrap::net
