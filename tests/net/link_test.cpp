// How Link handles what Gloo does to a process whose peer is broken, dead or hostile: one test per
// case measured on unmodified Gloo (the letters are those of src/net/gloo.md). Peers are raw
// Gloo.
#include "src/net/link.h"

#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/net/link_fixture.h"

namespace satrap::net {
namespace {

// Far more than the kernel buffers for a socket: it stays under way until the peer reads it.
constexpr std::size_t kManyBytes = 128 << 20;

// An address range that maps the same 16 MiB repeatedly: a message that takes seconds, so that it
// is under way for as long as a busy machine may take to notice, in little memory.
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

class LinkTest : public testing::Test {
 protected:
  LinkTest() {
    signal(SIGPIPE, SIG_IGN);  // as an Endpoint does
    peer_fd_ = connect_links(*link_, *peer_);
  }
  ~LinkTest() override { end(); }

  // Called before the memory of transfers that nothing waited for is freed.
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

  // Shuts down the peer's end of the connection, as when its process dies. Its close() would wait
  // for its event thread, which may be busy with a message until all of it has arrived.
  void cut_peer() const { ASSERT_EQ(shutdown(peer_fd_, SHUT_RDWR), 0); }

  void expect_down(const char* reason) {
    ASSERT_TRUE(eventually([&] { return link_->breaker()->is_tripped(); }));
    EXPECT_NE(std::string(link_->breaker()->error().what()).find(reason), std::string::npos)
        << link_->breaker()->error().what();
  }

  std::shared_ptr<Link> link_ = std::make_shared<Link>(make_gloo_device(), 0, 2);
  std::shared_ptr<Link> peer_ = std::make_shared<Link>(make_gloo_device(), 1, 2);
  int peer_fd_ = -1;
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

// A, B: posted receive or unmatched send; the peer closes.
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

// C: Gloo leaves the sender waiting for its whole timeout when the peer closes while bytes are
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

// D: the receiver likewise. Here the link is cut in mid-message: the sender closes after a part.
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

// F: a hung peer looks like a slow one; the deadline decides, and breaks the link.
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
  try {
    second->post_send(1, 1, 0, 64);
  } catch (const NetError& error) {  // says why, and not where in Gloo
    EXPECT_EQ(std::string_view(error.what()).find(".cc:"), std::string_view::npos) << error.what();
  }
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

// J: Gloo's event thread spins forever on a message whose buffer is gone.
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
  in.reset();  // sanitizers report a write that still arrives
  EXPECT_TRUE(eventually([&] { return peer_->breaker()->is_tripped(); }));
  Bytes out(64);
  const auto sending = theirs(out);
  EXPECT_ANY_THROW(sending->send(0, 1));
  end();
}

// The same event then has data to read, from a connection that is already closed.
TEST_F(LinkTest, CaseJ_SendBufferDestroyedBehindOurBackClosesTheLinkInsteadOfSpinning) {
  constexpr int kMaxTimes = 20;
  Bytes in(kManyBytes), out(kManyBytes, std::byte{7}), back_in(kManyBytes), back_out(kManyBytes);
  const auto receiving = theirs(in), sending = theirs(back_out);
  const auto receiving_back = ours(back_in);
  for (int i = 0; i < kMaxTimes && !link_->breaker()->is_tripped(); ++i) {
    receiving_back->post_receive(1, 2, 0, static_cast<std::int64_t>(back_in.size()));
    sending->send(0, 2);
    receiving->recv(0, 1);
    link_->mesh().make_buffer(out.data(), static_cast<std::int64_t>(out.size()))->send(1, 1);
    // The destructor waits while the event thread is sending, and a fast peer may take all of it.
    const auto is_taken = [&] { return peek(&in.back()) == std::byte{7}; };
    ASSERT_TRUE(eventually([&] { return link_->breaker()->is_tripped() || is_taken(); }));
    if (!is_taken()) break;
    receiving->waitRecv(std::chrono::seconds(30));
    sending->waitSend(std::chrono::seconds(30));
    receiving_back->wait_receive(soon());
    in.back() = std::byte{};
  }
  expect_down("destroyed while it was sent");
  end();
}

}  // namespace
}  // namespace satrap::net
