#include "src/net/handshake.h"

#include <cstring>

#include <sys/socket.h>

#include "src/net/bytes.h"
#include "src/net/proof.h"
#include "tests/net/link_fixture.h"

namespace satrap::net {
namespace {

constexpr std::uint64_t kProtocol = 77;

// A client and a server with their own tokens; what both say can be recorded.
class HandshakeTest : public testing::Test {
 protected:
  HandshakeTest() {
    auto [ours, theirs] = connected_sockets();
    client_ = std::make_unique<FrameSocket>(std::move(ours), kMaxHandshakeBytes);
    visitor_ = std::make_unique<Visitor>(std::move(theirs), kProtocol, soon());
  }

  // Serves the visitor on another thread while `client` runs; returns how it ended.
  std::optional<NetFailure> serve(const std::function<void()>& client) {
    std::optional<NetFailure> failure;
    std::thread server([&] {
      failure = failure_of([&] {
        while (!visitor_->advance(server_token_)) wait_ready(visitor_->fd(), POLLIN, soon());
        visitor_->accept(server_token_, "come in");
      });
    });
    client();
    server.join();
    return failure;
  }

  std::string introduce_client(std::uint64_t protocol = kProtocol) {
    return introduce(*client_, protocol, client_token_, "a request", soon());
  }

  std::string client_token_ = "secret", server_token_ = "secret";
  std::unique_ptr<FrameSocket> client_;
  std::unique_ptr<Visitor> visitor_;
};

TEST_F(HandshakeTest, BothEndsLearnWhatTheOtherSays) {
  std::string answer;
  EXPECT_EQ(serve([&] { answer = introduce_client(); }), std::nullopt);
  EXPECT_EQ(visitor_->request(), "a request");
  EXPECT_EQ(answer, "come in");
}

TEST_F(HandshakeTest, ClientWithoutTheTokenIsToldSo) {
  client_token_ = "Secret";
  std::string message;
  EXPECT_EQ(serve([&] { message = message_of([&] { introduce_client(); }); }),
            NetFailure::kRefused);
  EXPECT_EQ(message, "wrong token");
}

TEST_F(HandshakeTest, AnotherProtocolOrVersionIsToldSo) {
  std::string message;
  EXPECT_EQ(serve([&] { message = message_of([&] { introduce_client(kProtocol + 1); }); }),
            NetFailure::kRefused);
  EXPECT_NE(message.find("not a client of this version"), std::string::npos) << message;
}

// What a client of the version before this one sends, and how it reads the answer.
TEST_F(HandshakeTest, ClientOfThePreviousVersionIsToldSo) {
  std::string answer;
  EXPECT_EQ(serve([&] {
              client_->wait_send(ByteWriter()
                                     .put(std::uint64_t{0x31304E5041525453})
                                     .put_text("secret")
                                     .put_text("shard/0")
                                     .put_text("rank/0")
                                     .put_text(std::string(200, 'x'))
                                     .bytes(),
                                 soon());
              answer = client_->wait_receive(soon());
            }),
            NetFailure::kRefused);
  ByteReader reader(answer);
  EXPECT_NE(reader.get<std::uint8_t>(), 0);
  EXPECT_NE(reader.get_text().find("version"), std::string::npos);
}

// A server that answers everything, but knows another token or nothing.
TEST_F(HandshakeTest, ServerWithoutTheTokenIsFoundOut) {
  auto [ours, theirs] = connected_sockets();
  FrameSocket client(std::move(ours), kMaxHandshakeBytes);
  FrameSocket server(std::move(theirs), kMaxHandshakeBytes);
  std::thread impostor([&] {
    const std::string hello = server.wait_receive(soon());
    const std::string client_nonce = hello.substr(8), server_nonce = random_nonce();
    server.wait_send('\0' + server_nonce, soon());
    const std::string theirs_too = server.wait_receive(soon());
    const std::string proof =
        proof_of("guess", {Role::kServer, kProtocol, client_nonce, server_nonce, "come in"});
    server.wait_send('\0' + proof + "come in", soon());
  });
  EXPECT_EQ(failure_of([&] { introduce(client, kProtocol, "secret", "x", soon()); }),
            NetFailure::kProtocol);
  impostor.join();
}

// The client's own messages sent back to it prove nothing.
TEST_F(HandshakeTest, EchoOfItsOwnWordsIsNoServer) {
  auto [ours, theirs] = connected_sockets();
  FrameSocket client(std::move(ours), kMaxHandshakeBytes);
  FrameSocket mirror(std::move(theirs), kMaxHandshakeBytes);
  std::thread echo([&] {
    const std::string hello = mirror.wait_receive(soon());
    mirror.wait_send('\0' + hello.substr(8), soon());
    mirror.wait_send('\0' + mirror.wait_receive(soon()), soon());
  });
  EXPECT_EQ(failure_of([&] { introduce(client, kProtocol, "secret", "x", soon()); }),
            NetFailure::kProtocol);
  echo.join();
}

// Somebody between the two who keeps a copy of all that he passes on.
struct Recording {
  std::vector<std::string> of_client, of_server;
};

Recording recorded_handshake() {
  auto [client_end, tap_of_client] = connected_sockets();
  auto [tap_of_server, server_end] = connected_sockets();
  FrameSocket client(std::move(client_end), kMaxHandshakeBytes);
  FrameSocket to_client(std::move(tap_of_client), kMaxHandshakeBytes);
  FrameSocket to_server(std::move(tap_of_server), kMaxHandshakeBytes);
  Visitor visitor(std::move(server_end), kProtocol, soon());
  Recording recording;
  std::thread server([&] {
    while (!visitor.advance("secret")) wait_ready(visitor.fd(), POLLIN, soon());
    visitor.accept("secret", "come in");
  });
  std::thread tap([&] {
    for (int i = 0; i < 2; ++i) {
      recording.of_client.push_back(to_client.wait_receive(soon()));
      to_server.wait_send(recording.of_client.back(), soon());
      recording.of_server.push_back(to_server.wait_receive(soon()));
      to_client.wait_send(recording.of_server.back(), soon());
    }
  });
  EXPECT_EQ(introduce(client, kProtocol, "secret", "a request", soon()), "come in");
  server.join();
  tap.join();
  return recording;
}

TEST_F(HandshakeTest, RepeatedWordsOfAClientLetNobodyIn) {
  const Recording recording = recorded_handshake();
  std::string answer;
  EXPECT_EQ(serve([&] {
              client_->wait_send(recording.of_client[0], soon());
              client_->wait_receive(soon());
              client_->wait_send(recording.of_client[1], soon());
              answer = client_->wait_receive(soon());
            }),
            NetFailure::kRefused);
  EXPECT_NE(answer.find("wrong token"), std::string::npos);
}

TEST_F(HandshakeTest, RepeatedWordsOfAServerDeceiveNoClient) {
  const Recording recording = recorded_handshake();
  auto [ours, theirs] = connected_sockets();
  FrameSocket client(std::move(ours), kMaxHandshakeBytes);
  FrameSocket server(std::move(theirs), kMaxHandshakeBytes);
  std::thread impostor([&] {
    for (const std::string& words : recording.of_server) {
      server.wait_receive(soon());
      server.wait_send(words, soon());
    }
  });
  EXPECT_EQ(failure_of([&] { introduce(client, kProtocol, "secret", "a request", soon()); }),
            NetFailure::kProtocol);
  impostor.join();
}

TEST_F(HandshakeTest, RecordingHoldsNoToken) {
  const Recording recording = recorded_handshake();
  for (const auto* side : {&recording.of_client, &recording.of_server}) {
    for (const std::string& words : *side) {
      EXPECT_EQ(words.find("secret"), std::string::npos);
    }
  }
}

TEST_F(HandshakeTest, AlteredRequestIsRefused) {
  const Recording good = recorded_handshake();
  EXPECT_EQ(serve([&] {
              const std::string nonce = random_nonce();
              client_->wait_send(ByteWriter().put(kProtocol).bytes() + nonce, soon());
              const std::string greeting = client_->wait_receive(soon());
              const std::string proof =
                  proof_of("secret", {Role::kClient, kProtocol, nonce, greeting.substr(1), "one"});
              client_->wait_send(proof + "two", soon());
              client_->wait_receive(soon());
            }),
            NetFailure::kRefused);
}

// All that a stranger sends before his turn, or beyond it.
TEST_F(HandshakeTest, NoisyStrangersAreOutAfterOneMessage) {
  const std::uint32_t huge = 0x7FFFFFFF;
  const std::string announcement(reinterpret_cast<const char*>(&huge), sizeof(huge));
  for (const std::string& noise : {std::string(1 << 20, '\0'), std::string(1 << 20, 'x'),
                                   announcement + std::string(100, 'y')}) {
    auto [ours, theirs] = connected_sockets();
    Visitor visitor(std::move(theirs), kProtocol, soon());
    std::thread stranger([socket = std::move(ours), &noise] {
      const Deadline deadline = soon();
      std::size_t sent = 0;
      while (sent < noise.size() && !deadline.has_passed()) {
        const ssize_t count =
            send(socket.get(), noise.data() + sent, noise.size() - sent, MSG_NOSIGNAL);
        if (count > 0) sent += static_cast<std::size_t>(count);
        if (count < 0 && errno != EAGAIN) break;
      }
    });
    EXPECT_EQ(failure_of([&] {
                while (!visitor.advance("secret")) wait_ready(visitor.fd(), POLLIN, soon());
              }),
              NetFailure::kProtocol);
    visitor = Visitor(Fd(), kProtocol, soon());  // hangs up
    stranger.join();
  }
}

}  // namespace
}  // namespace satrap::net
