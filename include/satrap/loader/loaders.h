#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "satrap/data/row_deliveries.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/rendezvous.h"

namespace satrap::loader {

struct LoadersOptions {
  std::int64_t timeout_ms = 600'000;  // of waiting for a loader while there is none
  std::int64_t connect_ms = 2000;     // of connecting to one
  std::int64_t look_every_ms = 2000;  // for loaders that have come
  /// Rows of this rank that one loader reads before the next one's turn; of several ranks as many
  /// more as make a whole batch.
  std::int64_t rows_per_turn = 1024;
  std::int64_t rank = 0, num_ranks = 1;     // of the job, whose ranks share its loaders
  const std::atomic<bool>* stop = nullptr;  // once set, nobody waits for a loader; may be null
};

/// The loaders of a rank, which divide the rows of a pass in turns of equal size. The rows come in
/// the order of their numbers, each once, whatever the number of loaders: when one is lost, or a
/// new one has come, those that are there begin anew with the first row that is missing.
class Loaders {
 public:
  /// `name` is that of the rank, for logs of loaders.
  Loaders(net::EndpointOptions endpoint,
          const std::shared_ptr<net::Rendezvous>& store,
          std::string name,
          const LoadersOptions& options);
  ~Loaders();
  Loaders(const Loaders&) = delete;
  Loaders& operator=(const Loaders&) = delete;

  /// Reads passes by the loaders; this object outlives what it opens. next() waits for a loader,
  /// and throws Error(kIo) if there is none for timeout_ms, Error(kInvalidConfig) if one is of
  /// another version, and what the loader's reader has thrown. For the rows of a loader that shows
  /// by heartbeats that it lives, it waits as long as for a file.
  data::OpenDeliveries opener();

  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace satrap::loader
