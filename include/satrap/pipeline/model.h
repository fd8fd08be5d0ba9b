#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "satrap/backend/device.h"
#include "satrap/backend/stream_times.h"
#include "satrap/collective/device_communicator.h"
#include "satrap/core/thread_pool.h"
#include "satrap/data/schema.h"
#include "satrap/dense/dense_network.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/embedding_tables.h"
#include "satrap/ps/shard_client.h"

namespace satrap::pipeline {

/// Throws Error(kUnavailable) if the job is for a GPU and there is none that it could use.
void require_device(const job::JobConfig& config);

/// Makes a dense network other than that of the configuration, for a program that has one.
using MakeNetwork =
    std::function<std::unique_ptr<dense::DenseNetwork>(const dense::InputShape&, ThreadPool&)>;

/// Everything that is trained: the embedding rows and the dense network of a job. Built from the
/// configuration and the resolved schema; contents are those of step 0 until a checkpoint is
/// loaded. `make_network`: empty, or what the network comes from.
struct Model {
  Model(const job::JobConfig& config,
        const data::Schema& schema,
        Cluster& cluster,
        ThreadPool& pool,
        const MakeNetwork& make_network = {});

  std::unique_ptr<backend::Device>
      device;  // of rows in a cache, or of the network; nullptr: neither
  std::unique_ptr<backend::Stream> stream;      // of the network, if it is on the device
  std::unique_ptr<backend::StreamTimes> times;  // of what it does
  // Connects several ranks with a GPU each; nullptr: they exchange all in the hosts' memory.
  std::unique_ptr<collective::DeviceCommunicator> device_ranks;
  job::EmbeddingSpecs specs;
  std::unique_ptr<ps::ShardClient> shards;  // where the job's rows are on shards
  std::unique_ptr<EmbeddingTables> tables;
  std::unique_ptr<dense::DenseNetwork> network;
};

}  // namespace satrap::pipeline
