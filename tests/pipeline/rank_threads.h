#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "satrap/pipeline/cluster.h"
#include "tests/support/temporary_directory.h"

namespace satrap::pipeline {

/// Ranks of one job on shards that get no requests, each rank in its own thread.
class RankThreads {
 public:
  RankThreads() { job.embedding.store = job::StoreKind::kPs; }

  job::ClusterConfig config(std::int64_t rank, std::int64_t num_ranks) const {
    job::ClusterConfig config;
    config.rank = rank;
    config.num_ranks = num_ranks;
    config.num_shards = 1;
    config.store = "file://" + directory_.path() + "/store";
    config.job = "start-1/";
    return config;
  }

  /// Runs body(cluster) on each.
  void run(std::int64_t num_ranks, const std::function<void(Cluster&)>& body) const {
    std::vector<std::thread> threads;
    for (std::int64_t rank = 0; rank < num_ranks; ++rank) {
      threads.emplace_back([&, rank] {
        Cluster cluster(job, config(rank, num_ranks));
        body(cluster);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  job::JobConfig job;

 private:
  const TemporaryDirectory directory_;
};

}  // namespace satrap::pipeline
