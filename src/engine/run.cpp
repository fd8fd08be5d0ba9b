#include "src/engine/run.h"

#include <memory>
#include <utility>

#include <unistd.h>

#include "satrap/app/main.h"
#include "satrap/app/train_job.h"
#include "satrap/core/error.h"
#include "satrap/core/thread_group.h"
#include "satrap/job/published_job.h"
#include "satrap/net/rendezvous.h"
#include "satrap/trainer/metrics_json.h"

namespace satrap::engine {
namespace {

/// Shards of a program are started without a configuration.
void tell_shards(const job::JobConfig& config,
                 const job::ClusterConfig& cluster,
                 const std::atomic<bool>& stop) {
  if (cluster.rank != 0 || cluster.num_shards == 0) return;
  const auto deadline = net::Deadline::after_ms(config.cluster.timeout_ms()).unless(stop);
  job::publish_job(config, *net::open_rendezvous(cluster.store, cluster.token, deadline));
}

}  // namespace

Run::Run(const job::JobConfig& config,
         trainer::TrainOptions options,
         std::optional<std::int64_t> num_parameters,
         std::int64_t num_summed)
    : process_(getpid()),
      config_(config),
      options_(std::move(options)),
      summed_(static_cast<std::size_t>(dense::GradientSource::kFlagFloats + num_summed)) {
  options_.cluster = job::ClusterConfig::from_environment();
  options_.stop = &stop_;
  options_.memory_of_batches = &memory_of_batches_;
  if (num_parameters) options_.make_network = network(*num_parameters);
  app::choose_run_dir(config_, options_);
  start([this] {
    tell_shards(config_, options_.cluster, stop_);
    outcome_ = app::train_job(config_, options_, [this](const std::string& w) { words_ = w; });
  });
}

Run::Run(std::vector<std::string> words, std::optional<job::JobConfig> job)
    : process_(getpid()), summed_(static_cast<std::size_t>(dense::GradientSource::kFlagFloats)) {
  start([this, words = std::move(words), job = std::move(job)] {
    app::HostProgram host{.network = [this](const auto& config) { return ask_for_network(config); },
                          .memory_of_batches = &memory_of_batches_,
                          .job = job};
    if (job) {
      host.take_evaluation = [this](const trainer::Evaluation& evaluation) {
        evaluation_ = trainer::evaluation_json(evaluation).dump();
      };
    }
    status_ = app::run_command(words, host);
  });
}

template <class Work>
void Run::start(Work work) {
  thread_ = start_thread("train", [this, work = std::move(work)] {
    try {
      work();
    } catch (...) {
      error_ = std::current_exception();
    }
    calls_.end();
  });
}

pipeline::MakeNetwork Run::network(std::int64_t num_parameters) {
  return [this, num_parameters](const dense::InputShape& shape, ThreadPool& pool) {
    return std::make_unique<dense::ExternalNetwork>(calls_, shape, num_parameters,
                                                    std::span(summed_), pool);
  };
}

pipeline::MakeNetwork Run::ask_for_network(const job::JobConfig& config) {
  config_ = config;
  dense::NetworkCall call{.kind = dense::NetworkCall::Kind::kMake};
  calls_.make(call);
  return network(call.num_parameters);
}

Run::~Run() {
  if (getpid() == process_) {
    close();
  } else {
    thread_.detach();
  }
}

void Run::close() {
  stop();
  fail("it has ended");
  join();
}

dense::NetworkCall* Run::next_call(std::chrono::milliseconds time) {
  return calls_.wait_until(std::chrono::steady_clock::now() + time);
}

const trainer::TrainOutcome& Run::result() {
  SATRAP_CHECK(has_ended(), "the result of a run that goes on");
  join();
  if (error_) std::rethrow_exception(error_);
  return outcome_;
}

}  // namespace satrap::engine
