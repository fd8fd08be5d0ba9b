#include "src/trainer/training_loaders.h"

#include <string>

#include "satrap/core/error.h"
#include "satrap/net/rendezvous.h"

namespace satrap::trainer {

std::unique_ptr<loader::Loaders> open_loaders(const job::JobConfig& config,
                                              const pipeline::Cluster& cluster) {
  const data::LoadersConfig& loaders = config.data.loaders;
  if (!loaders.is_on()) return nullptr;
  const job::ClusterConfig& place = cluster.config();
  const std::string url = loaders.store == data::LoadersConfig::kJob ? place.store : loaders.store;
  if (url.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                "data.loaders.store: job needs the store of a job: start it with `satrap-run "
                "--loaders N`, or write the URL of a `satrap store`");
  }
  return std::make_unique<loader::Loaders>(
      pipeline::endpoint_options(config, place),
      net::open_rendezvous(url, place.token, cluster.deadline()), concat("rank ", place.rank),
      loader::LoadersOptions{.timeout_ms = loaders.timeout_ms(),
                             .rank = cluster.rank(),
                             .num_ranks = cluster.size(),
                             .stop = cluster.stop()});
}

}  // namespace satrap::trainer
