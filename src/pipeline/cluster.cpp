#include "satrap/pipeline/cluster.h"

#include <random>

#include "satrap/core/error.h"
#include "satrap/job/interval.h"

namespace satrap::pipeline {
namespace {

constexpr const char* kStartKey = "start";
constexpr std::size_t kNonceDigits = 16;

std::string random_nonce() {
  std::random_device device;
  std::string digits;
  while (digits.size() < kNonceDigits) digits += "0123456789abcdef"[device() % 16];
  return digits;
}

void check(const job::JobConfig& job, const job::ClusterConfig& config) {
  const bool on_shards = job.embedding.store == "ps";
  if (!on_shards && config.num_ranks > 1) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("embedding.store: embedded keeps the tables in one process, but there are ",
                       config.num_ranks, " ranks; write store: ps"));
  }
  if (!on_shards && config.num_shards > 0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("embedding.store: embedded does not use the ", config.num_shards,
                       " shards of this job; write store: ps, or start none"));
  }
  if (on_shards && (config.num_shards < 1 || config.store.empty())) {
    throw Error(ErrorCode::kInvalidConfig,
                "embedding.store: ps needs shards: start the job with `satrap-run --ps N`, or set "
                "SATRAP_STORE and SATRAP_SHARDS as `satrap-run --ps-only` prints them");
  }
}

}  // namespace

net::EndpointOptions endpoint_options(const job::JobConfig& job, const job::ClusterConfig& config) {
  net::EndpointOptions options;
  options.interface = config.interface;
  options.token = config.token;
  options.heartbeat_interval_ms = std::max<std::int64_t>(1, job.cluster.heartbeat_ms() / 10);
  options.heartbeat_timeout_ms = job.cluster.heartbeat_ms();
  return options;
}

Cluster::Cluster(const job::JobConfig& job,
                 const job::ClusterConfig& config,
                 const std::atomic<bool>* stop)
    : config_(config), timeout_ms_(job.cluster.timeout_ms()), stop_(stop) {
  check(job, config);
  if (config.store.empty() || job.embedding.store != "ps") return;
  endpoint_.emplace(endpoint_options(job, config));
  store_ = net::open_store(config.store, config.token, deadline());
  own_store_ = std::make_shared<net::PrefixStore>(config.job, store_);
}

std::string Cluster::share(const std::string& text) {
  if (size() == 1) return text;
  if (is_chief()) {
    start_ = random_nonce();
    own_store_->set(kStartKey, start_ + text);
  } else {
    start_ = own_store_->wait(kStartKey, deadline());
  }
  const std::string shared = is_chief() ? text : start_.substr(kNonceDigits);
  start_.resize(kNonceDigits);
  // Once all ranks have read the key, a later start under the same name must not see it.
  make_communicator("start")->barrier(deadline());
  if (is_chief()) own_store_->erase(kStartKey);
  return shared;
}

std::unique_ptr<collective::Communicator> Cluster::make_communicator(const std::string& name) {
  if (size() == 1) return collective::make_single_communicator();
  return collective::make_gloo_communicator(*endpoint_, *own_store_, start_ + "/" + name, rank(),
                                            size(), deadline());
}

}  // namespace satrap::pipeline
