#include "satrap/ps/shard_server.h"

#include <optional>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/net/connection.h"
#include "satrap/net/net_error.h"
#include "satrap/net/server.h"
#include "src/ps/shard.h"
#include "src/ps/shard_wire.h"

namespace satrap::ps {
namespace {

net::ServerOptions server_options(const ShardServerOptions& options) {
  net::ServerOptions server;
  server.num_workers = 0;  // the shard's own workers do long work
  server.max_in_flight = kMaxInFlight;
  server.max_request_bytes = options.max_request_bytes;
  return server;
}

/// A second process that serves the same shard would take the ranks that come later. One that has
/// ended may be replaced.
std::string unserved(const net::Endpoint& endpoint,
                     net::Rendezvous& store,
                     std::string name,
                     const ShardServerOptions& options) {
  constexpr std::int64_t kPatienceMs = 5000;  // with one that has been stopped
  const std::optional<std::string> other = net::Server::find(store, name);
  if (!other) return name;
  try {
    const net::Connection connection(endpoint, *other, name, "another " + name,
                                     net::Deadline::after_ms(kPatienceMs));
  } catch (const net::NetError& error) {
    log_info("shard {} was served at {} before: {}", options.shard, *other, error.what());
    return name;
  }
  throw Error(ErrorCode::kInvalidConfig,
              concat("shard ", options.shard, " of ", options.num_shards, " is served at ", *other,
                     " already, by another process of this job: start each shard once, or give "
                     "this one another --shard"));
}

}  // namespace

class ShardServer::Impl {
 public:
  Impl(const net::Endpoint& endpoint,
       net::Rendezvous& store,
       std::vector<table::TableSpec> tables,
       std::uint64_t seed,
       const ShardServerOptions& options)
      : shard_(std::move(tables), seed, options),
        server_(endpoint,
                store,
                unserved(endpoint, store, shard_name(options.shard), options),
                server_options(options),
                [this](std::unique_ptr<net::ServerCall>& call) { shard_.handle(call); }) {}

  const std::string& address() const { return server_.address(); }

 private:
  Shard shard_;
  net::Server server_;  // destroyed before the shard
};

ShardServer::ShardServer(const net::Endpoint& endpoint,
                         net::Rendezvous& store,
                         std::vector<table::TableSpec> tables,
                         std::uint64_t seed,
                         const ShardServerOptions& options)
    : impl_(std::make_unique<Impl>(endpoint, store, std::move(tables), seed, options)) {}
ShardServer::~ShardServer() = default;
const std::string& ShardServer::address() const { return impl_->address(); }

}  // namespace satrap::ps
