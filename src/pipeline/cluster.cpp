#include "satrap/pipeline/cluster.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/mutex.h"
#include "satrap/core/thread_group.h"
#include "satrap/job/interval.h"
#include "satrap/net/net_error.h"

namespace satrap::pipeline {
namespace {

constexpr const char* kStartKey = "start";
constexpr const char* kSignsKey = "signs-of-life";  // of the chief, before the start: a counter
constexpr std::size_t kNonceDigits = 16;

std::string random_nonce() {
  std::random_device device;
  std::string digits;
  while (digits.size() < kNonceDigits) digits += "0123456789abcdef"[device() % 16];
  return digits;
}

void check(const job::JobConfig& job, const job::ClusterConfig& config) {
  const bool on_shards = job.embedding.store == job::StoreKind::kPs;
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

/// Counts in the store as long as it lives, so that others see that this process does.
class SignsOfLife {
 public:
  SignsOfLife(net::Rendezvous& store, std::int64_t pause_ms)
      : store_(store), pause_(pause_ms), threads_([this] { stop(); }) {
    threads_.start("signs-of-life", [this] { run(); });
  }

 private:
  void stop() {
    {
      const MutexLock lock(mutex_);
      ends_ = true;
    }
    ended_.notify_all();
  }
  void run() {
    const MutexLock lock(mutex_);
    for (;;) {
      const auto next = std::chrono::steady_clock::now() + pause_;
      while (!ends_ && ended_.wait_until(mutex_, next)) continue;
      if (ends_) return;
      try {
        store_.add(kSignsKey, 1);
      } catch (const Error& error) {
        log_warning("the other ranks may give up: {}", error.what());
        return;
      }
    }
  }

  net::Rendezvous& store_;
  const std::chrono::milliseconds pause_;
  Mutex mutex_;
  CondVar ended_;
  bool ends_ SATRAP_GUARDED_BY(mutex_) = false;
  ThreadGroup threads_;
};

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
  if (config.store.empty() || job.embedding.store != job::StoreKind::kPs) return;
  endpoint_.emplace(endpoint_options(job, config));
  store_ = net::open_rendezvous(config.store, config.token, deadline());
  own_store_ = std::make_shared<net::PrefixRendezvous>(config.job, store_);
}

std::string Cluster::share(const std::function<std::string()>& make) {
  if (size() == 1) return make();
  if (is_chief()) {
    const SignsOfLife signs(*own_store_, std::min<std::int64_t>(timeout_ms_ / 4, 500));
    start_ = random_nonce() + make();
    own_store_->set(kStartKey, start_);
  } else {
    start_ = wait_for_start();
  }
  std::string shared = start_.substr(kNonceDigits);
  start_.resize(kNonceDigits);
  // Once all ranks have read the keys, a later start under the same name must not see them.
  make_communicator("start")->barrier(deadline());
  if (is_chief()) {
    own_store_->erase(kStartKey);
    own_store_->erase(kSignsKey);
  }
  return shared;
}

std::string Cluster::wait_for_start() const {
  std::optional<std::string> signs;
  for (;;) {
    try {
      return own_store_->wait(kStartKey, deadline());
    } catch (const net::NetError& error) {
      const std::optional<std::string> before = std::exchange(signs, own_store_->get(kSignsKey));
      if (error.failure() != net::NetFailure::kTimeout || signs == before) throw;
    }
  }
}

std::unique_ptr<collective::Communicator> Cluster::make_communicator(const std::string& name) {
  if (size() == 1) return collective::make_single_communicator();
  return collective::make_gloo_communicator(*endpoint_, *own_store_, start_ + "/" + name, rank(),
                                            size(), deadline());
}

}  // namespace satrap::pipeline
