// What a client that knows the token asks a server for at the end of the handshake: any bytes are
// answered or refused, and another client is still served.
#include <string>

#include "satrap/core/log.h"
#include "satrap/net/connection.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/file_rendezvous.h"
#include "satrap/net/server.h"
#include "src/net/handshake.h"
#include "src/net/proof.h"
#include "src/net/wire.h"
#include "tests/fuzz/folder.h"

namespace {

using namespace satrap::net;

constexpr const char* kToken = "a secret of the job";

EndpointOptions endpoint_options() {
  EndpointOptions options;
  options.token = kToken;
  return options;
}

struct Service {
  const satrap::fuzz::Folder folder{"store"};
  FileRendezvous store{folder.path()};
  const Endpoint endpoint{endpoint_options()};
  const Server server{endpoint,
                      store,
                      "shard",
                      {.max_in_flight = 1, .slot_bytes = 4096, .setup_timeout_ms = 200},
                      [](std::unique_ptr<ServerCall>& call) { call->reply(call->payload()); }};

  std::int64_t port() const {
    const std::string& address = server.address();
    return std::stoll(address.substr(address.rfind(' ') + 1));
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kMaxHandshakeBytes - 100) return -1;
  satrap::set_log_level(satrap::LogLevel::kOff);
  static const std::string first =
      random_nonce();  // OpenSSL begins before the service, and ends after it
  static Service service;
  const Deadline deadline = Deadline::after_ms(4000);
  satrap::fuzz::is_refused([&] {
    FrameSocket socket(connect_tcp("127.0.0.1", service.port(), deadline), kMaxHandshakeBytes);
    introduce(socket, kMagic, kToken, satrap::fuzz::text_of(data, size), deadline);
  });
  if (deadline.has_passed()) satrap::fuzz::fail("no answer");
  static int inputs = 0;
  if (++inputs % 64 != 0) return 0;  // it takes a few milliseconds
  Connection client(service.endpoint, service.store, "shard", "client", deadline);
  const std::byte bytes[3]{};
  const auto answer = client.call_for_any_size(1, {service.endpoint, {bytes}}, deadline).wait();
  if (answer.size() != sizeof(bytes)) satrap::fuzz::fail("another client is not served");
  return 0;
}
