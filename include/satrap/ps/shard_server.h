#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "satrap/net/endpoint.h"
#include "satrap/net/rendezvous.h"
#include "satrap/table/table_spec.h"

namespace satrap::ps {

struct ShardServerOptions {
  std::int64_t shard = 0;
  std::int64_t num_shards = 1;

  /// Threads that work on rows, each on its own partitions.
  std::int64_t num_workers = 1;

  /// Requests larger than this are refused before memory is allocated for them.
  std::int64_t max_request_bytes = std::int64_t{1} << 30;

  /// Called by a worker before it works on a request: for tests of slow shards.
  std::function<void()> before_request = {};

  /// Off only in the test that shows the effect of the bound.
  bool enforce_bound = true;
};

/// One parameter-server shard: tables, the threads that work on them, and the server through which
/// ranks reach it. Serves until it is destroyed. Rows belong to the shard; only its workers run
/// their optimizer, each on its own partitions, so nothing on the path of a row takes a lock.
class ShardServer {
 public:
  /// Publishes itself in the store as "shard/<number>".
  ShardServer(const net::Endpoint& endpoint,
              net::Rendezvous& store,
              std::vector<table::TableSpec> tables,
              std::uint64_t seed,
              const ShardServerOptions& options);
  ~ShardServer();
  ShardServer(const ShardServer&) = delete;
  ShardServer& operator=(const ShardServer&) = delete;

  const std::string& address() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace satrap::ps
