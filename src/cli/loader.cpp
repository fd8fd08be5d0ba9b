#include "src/cli/loader.h"

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/loader/loader_server.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/rendezvous.h"

namespace satrap::cli {
namespace {

constexpr std::int64_t kStoreTimeoutMs = 600'000;
// It knows the cluster.heartbeat of no job: often enough for the shortest, patient with the
// longest.
constexpr std::int64_t kLoaderHeartbeatMs = 50;
constexpr std::int64_t kLoaderPatienceMs = 600'000;

}  // namespace

void serve_loader(const LoaderOptions& options) {
  if (options.cluster.store.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                "--store: where the processes of the job meet is not said, nor is SATRAP_STORE "
                "set; `satrap store` serves a store and prints its URL");
  }
  const net::Endpoint endpoint({.interface = options.cluster.interface,
                                .token = options.cluster.token,
                                .heartbeat_interval_ms = kLoaderHeartbeatMs,
                                .heartbeat_timeout_ms = kLoaderPatienceMs});
  const auto store =
      net::open_rendezvous(options.cluster.store, options.cluster.token,
                           net::Deadline::after_ms(kStoreTimeoutMs).unless(*options.stop));
  const loader::LoaderServer server(endpoint, store, {.num_threads = options.num_threads});
  log_info("loader {} serves at {}", server.number(), server.address());
  options.stop->wait(false);
}

}  // namespace satrap::cli
