#include "src/cli/shard.h"

#include <memory>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/job/published_job.h"
#include "satrap/job/read_job.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/rendezvous.h"
#include "satrap/ps/shard_server.h"

namespace satrap::cli {
namespace {

job::JobConfig read_job(const std::string& config, const std::vector<std::string>& overrides) {
  ConfigOrigins origins;
  return job::read_job(config, overrides, origins);
}

std::shared_ptr<net::Rendezvous> open_store(const ShardOptions& options,
                                            const job::ClusterOptions& cluster) {
  return net::open_rendezvous(options.cluster.store, options.cluster.token,
                              net::Deadline::after_ms(cluster.timeout_ms()).unless(*options.stop));
}

}  // namespace

void serve_shard(const std::string& config,
                 const std::vector<std::string>& overrides,
                 const ShardOptions& options) {
  if (options.num_shards < 1 || options.shard < 0 || options.shard >= options.num_shards) {
    throw Error(ErrorCode::kInvalidConfig, concat("--shard must be from 0 to --shards - 1, got ",
                                                  options.shard, " of ", options.num_shards));
  }
  if (options.cluster.store.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                "environment: SATRAP_STORE, where the processes of the job meet, is not set; "
                "satrap-run sets it");
  }
  job::JobConfig job;
  std::shared_ptr<net::Rendezvous> store;
  if (config.empty()) {
    store = open_store(options, {});
    log_info("shard {} of {} waits for rank 0 to say what its tables are", options.shard,
             options.num_shards);
    job = job::wait_for_job(*store, *options.stop);
  } else {
    job = read_job(config, overrides);
    store = open_store(options, job.cluster);
  }
  const job::EmbeddingSpecs specs = job::embedding_specs(job, data::resolve_schema(job.data));

  const net::Endpoint endpoint({.interface = options.cluster.interface,
                                .token = options.cluster.token,
                                .heartbeat_interval_ms = job.cluster.heartbeat_ms() / 10 + 1,
                                .heartbeat_timeout_ms = job.cluster.heartbeat_ms()});
  const std::int64_t num_workers = options.num_workers > 0 ? options.num_workers : num_cpus();
  const ps::ShardServer server(
      endpoint, *store, specs.tables, specs.seed,
      {.shard = options.shard, .num_shards = options.num_shards, .num_workers = num_workers});
  log_info("shard {} of {} serves at {} with {} workers", options.shard, options.num_shards,
           server.address(), num_workers);
  options.stop->wait(false);
}

}  // namespace satrap::cli
