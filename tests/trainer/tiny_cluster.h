#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "satrap/data/open_rows.h"
#include "satrap/data/schema.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/file_rendezvous.h"
#include "satrap/ps/shard_server.h"
#include "satrap/trainer/trainer.h"
#include "tests/support/temporary_directory.h"

namespace satrap::trainer {

/// Shards and ranks of one job, all in this process.
class TinyCluster {
 public:
  TinyCluster(const job::JobConfig& job, std::int64_t num_shards, std::int64_t num_ranks)
      : job_(job), num_ranks_(num_ranks), num_shards_(num_shards) {
    job_.embedding.store = job::StoreKind::kPs;
    job_.cluster.timeout = "60s";
    start_shards();
  }

  /// Starts a new set of shards, as after a kill of all of them.
  void start_shards(const std::function<void()>& before_request = {}) {
    shards_.clear();
    const job::EmbeddingSpecs specs = job::embedding_specs(job_, data::resolve_schema(job_.data));
    for (std::int64_t s = 0; s < num_shards_; ++s) {
      shards_.push_back(std::make_unique<ps::ShardServer>(
          endpoint_, store_, specs.tables, specs.seed,
          ps::ShardServerOptions{.shard = s,
                                 .num_shards = num_shards_,
                                 .num_workers = s + 1,
                                 .before_request = before_request}));
    }
  }

  job::JobConfig& job() { return job_; }

  /// Trains on all ranks, each in its own thread. Returns the chief's outcome; rethrows the first
  /// rank's error.
  TrainOutcome train(const TrainOptions& options = {}) {
    const std::vector<std::exception_ptr> errors = try_to_train(options);
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
    return outcome_;
  }

  /// As train; returns the error of each rank, if it has one.
  std::vector<std::exception_ptr> try_to_train(const TrainOptions& options = {}) {
    ++num_starts_;
    std::vector<TrainOutcome> outcomes(static_cast<std::size_t>(num_ranks_));
    std::vector<std::exception_ptr> errors(outcomes.size());
    std::vector<std::thread> threads;
    for (std::int64_t r = 0; r < num_ranks_; ++r) {
      threads.emplace_back([&, r] {
        const auto i = static_cast<std::size_t>(r);
        try {
          TrainOptions mine = options;
          mine.cluster = {.rank = r,
                          .num_ranks = num_ranks_,
                          .local_rank = {},
                          .num_shards = num_shards_,
                          .store = "file://" + directory_.path() + "/store",
                          .token = "",
                          .job = "start-" + std::to_string(num_starts_) + "/"};
          outcomes[i] = trainer::train(job_, mine);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    outcome_ = outcomes.front();
    return errors;
  }

 private:
  job::JobConfig job_;
  const std::int64_t num_ranks_, num_shards_;
  std::int64_t num_starts_ = 0;
  TrainOutcome outcome_;  // the chief's
  const TemporaryDirectory directory_;
  net::Endpoint endpoint_{{}};
  net::FileRendezvous store_{directory_.path() + "/store"};
  std::vector<std::unique_ptr<ps::ShardServer>> shards_;
};

}  // namespace satrap::trainer
