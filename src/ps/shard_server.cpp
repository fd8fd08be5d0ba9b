#include "satrap/ps/shard_server.h"

#include <utility>

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

}  // namespace

class ShardServer::Impl {
 public:
  Impl(const net::Endpoint& endpoint,
       net::Store& store,
       std::vector<table::TableSpec> tables,
       std::uint64_t seed,
       const ShardServerOptions& options)
      : shard_(std::move(tables), seed, options),
        server_(endpoint,
                store,
                shard_name(options.shard),
                server_options(options),
                [this](std::unique_ptr<net::ServerCall>& call) { shard_.handle(call); }) {}

  const std::string& address() const { return server_.address(); }

 private:
  Shard shard_;
  net::Server server_;  // destroyed before the shard
};

ShardServer::ShardServer(const net::Endpoint& endpoint,
                         net::Store& store,
                         std::vector<table::TableSpec> tables,
                         std::uint64_t seed,
                         const ShardServerOptions& options)
    : impl_(std::make_unique<Impl>(endpoint, store, std::move(tables), seed, options)) {}
ShardServer::~ShardServer() = default;
const std::string& ShardServer::address() const { return impl_->address(); }

}  // namespace satrap::ps
