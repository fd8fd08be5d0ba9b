#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "satrap/net/endpoint.h"
#include "satrap/net/rendezvous.h"

namespace satrap::loader {

struct LoaderServerOptions {
  std::int64_t num_threads = 0;  // that parse, for each rank; 0: its share of the CPUs

  /// The threads that parse for one of a job's `num_ranks`, each of which reads from every loader.
  std::int64_t threads_for(std::int64_t num_ranks) const;
};

/// A loader: reads, parses and hashes the rows that ranks ask for, and sends them. It knows no job:
/// a rank says which files, which columns and which of the rows. What a loader remembers of a rank
/// ends with its connection, so that loaders may come and go. Serves until it is destroyed.
///
/// Threads: those of net::Server and, for each connection, "loader-send" and those of a reader.
class LoaderServer {
 public:
  /// Enters itself in the store, under a number that no loader has had.
  LoaderServer(const net::Endpoint& endpoint,
               std::shared_ptr<net::Rendezvous> store,
               const LoaderServerOptions& options);
  ~LoaderServer();  // takes the entry back, if the store can be reached
  LoaderServer(const LoaderServer&) = delete;
  LoaderServer& operator=(const LoaderServer&) = delete;

  std::int64_t number() const;
  const std::string& address() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace satrap::loader
