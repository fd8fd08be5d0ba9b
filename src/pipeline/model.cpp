#include "satrap/pipeline/model.h"

#include <algorithm>
#include <optional>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/dense/precision.h"
#include "satrap/pipeline/cached_tables.h"
#include "satrap/pipeline/input_shape.h"
#include "satrap/pipeline/local_tables.h"
#include "satrap/pipeline/shard_tables.h"
#include "src/pipeline/cache_options.h"
#include "src/pipeline/gpu_of_rank.h"
#include "src/pipeline/memory_plan.h"
#include "src/pipeline/partitioned_rows.h"

namespace satrap::pipeline {
namespace {

ps::ShardClient::Options client_options(const job::JobConfig& job, const Cluster& cluster) {
  return {.rank = cluster.rank(),
          .num_shards = cluster.config().num_shards,
          .encoding = job.embedding.wire,
          .timeout_ms = cluster.timeout_ms(),
          .stop = cluster.stop()};
}

std::int64_t num_local_ranks(const Cluster& cluster) {
  const std::int64_t local = cluster.config().num_local_ranks;
  return local > 0 ? local : cluster.size();
}

std::unique_ptr<backend::Device> make_device(const job::JobConfig& config,
                                             const Cluster& cluster,
                                             ThreadPool& pool) {
  if (!config.is_on_gpu()) return backend::make_host_device(&pool);
  require_device(config);
  const int number = gpu_of_rank(cluster.config(), backend::num_cuda_devices());
  auto device = backend::make_cuda_device(number);
  if (cluster.is_chief()) log_info("device: cuda, GPU {}: {}", number, device->info().name);
  return device;
}

void say_where_rows_stay(const job::JobConfig& config, const Cluster& cluster) {
  if (!config.is_on_gpu() || config.embedding.has_cache() || !cluster.is_chief()) return;
  std::string why = config.why_no_cache();
  if (why.empty()) {
    why = concat("embedding.cache.memory is 0",
                 cluster.config().has_several_nodes() ? ", which auto means on several nodes" : "");
  }
  log_info("the GPU computes the network alone, and rows stay {}: {}",
           config.embedding.store == job::StoreKind::kPs ? "on the shards" : "in the host's tables",
           why);
}

/// Once per job, where a user may wonder.
void say_why_not_on_gpu(const job::JobConfig& config, const Cluster& cluster) {
  if (config.why_not_on_gpu.empty() || !cluster.is_chief()) return;
  log_info("device: auto is cpu: {}", config.why_not_on_gpu);
}

/// Connects the ranks' GPUs; nullptr on all ranks if they cannot be.
std::unique_ptr<collective::DeviceCommunicator> connect_devices(const job::JobConfig& config,
                                                                Cluster& cluster,
                                                                backend::Device& device) {
  if (cluster.size() == 1 || config.train.is_async()) return nullptr;
  const auto group = cluster.make_communicator("devices");
  std::string reason;
  auto device_ranks = collective::make_device_communicator(
      *group, device, {.timeout_ms = cluster.timeout_ms(), .in_order = config.train.deterministic},
      reason);
  if (cluster.is_chief()) {
    log_info("the ranks exchange {} {}",
             config.embedding.has_cache() ? "rows and gradients" : "dense gradients",
             device_ranks ? "from GPU to GPU, by NCCL" : concat("in the host's memory: ", reason));
  }
  return device_ranks;
}

/// What a rank has of the device's memory; several ranks of a node share its memory, but not that
/// of a GPU.
std::int64_t device_bytes(const Cluster& cluster, const backend::Device& device) {
  return device.is_host() ? memory_bytes() / num_local_ranks(cluster) : device.info().free_bytes;
}

/// Several ranks divide the keys of one cache among them, and exchange rows in every step.
void check_cluster(const Cluster& cluster) {
  if (cluster.size() <= PartitionedRows::kMaxRanks) return;
  throw Error(
      ErrorCode::kInvalidConfig,
      concat("embedding.cache.memory: at most ", PartitionedRows::kMaxRanks,
             " ranks share a cache, there are ", cluster.size(), "; start fewer, or write 0"));
}

/// Says what the job takes of its GPU; throws if it is more than there is.
void plan_gpu_memory(const job::JobConfig& config,
                     const Cluster& cluster,
                     const backend::Device& device,
                     const dense::InputShape& shape,
                     const dense::DenseNetwork& network,
                     bool keeps_rows,
                     bool is_connected,  // with the GPUs of other ranks
                     std::int64_t cache_bytes,
                     std::int64_t free_bytes) {
  const std::int64_t examples = std::max<std::int64_t>(1, config.data.batch_size / cluster.size());
  const DenseOptimizer optimizer = job::plain_optimizer(config.dense_optimizer);
  const MemoryPlan plan = plan_memory(
      {.batches = config.train.max_in_flight() + network.max_in_flight() - 1,
       .examples = examples,
       .columns = shape.device_width,
       .device_columns = keeps_rows ? shape.device_width : 0,
       .ids = std::ssize(shape.field_widths),
       .numbers = shape.num_numeric + shape.num_outputs(),
       .num_parameters = config.uses_graph() ? network.num_parameters() : 0,
       .optimizer_values = (optimizer.uses_first() ? 1 : 0) + (optimizer.uses_second() ? 1 : 0),
       .has_libtorch = config.uses_graph() && device.libtorch_gpu() >= 0,
       .exchanges_rows = config.embedding.has_cache() && cluster.size() > 1,
       .sums_in_order = is_connected && config.train.deterministic,
       .cache_bytes = cache_bytes,
       .free_bytes = free_bytes});
  plan.check();
  if (cluster.is_chief()) log_info("GPU memory: {}", plan.describe());
}

}  // namespace

void require_device(const job::JobConfig& config) {
  if (!config.is_on_gpu()) return;
  if (const std::string reason = backend::why_no_cuda(); !reason.empty()) {
    throw Error(ErrorCode::kUnavailable,
                concat("device: there is no GPU for cuda: ", reason, "; write cpu"));
  }
}

Model::Model(const job::JobConfig& config,
             const data::Schema& schema,
             Cluster& cluster,
             ThreadPool& pool,
             const MakeNetwork& make_network)
    : specs(job::embedding_specs(config, schema)) {
  const bool is_cached = config.embedding.has_cache();
  say_why_not_on_gpu(config, cluster);
  say_where_rows_stay(config, cluster);
  if (is_cached) {
    check_cluster(cluster);
    note_order(config.train, cluster);
  }
  if (is_cached || config.is_on_gpu()) device = make_device(config, cluster, pool);
  if (config.is_on_gpu() && config.uses_graph()) {
    stream = std::make_unique<backend::Stream>(*device);
    times = std::make_unique<backend::StreamTimes>(*device, *stream);
    device_ranks = connect_devices(config, cluster, *device);
  }
  const std::int64_t available = device ? device_bytes(cluster, *device) : 0;  // beside NCCL's
  const std::int64_t cache_bytes = is_cached ? config.embedding.cache.memory_bytes(available) : 0;
  table::RowStore* store = nullptr;  // what a cache is put in front of
  if (config.embedding.store == job::StoreKind::kPs) {
    shards = ps::ShardClient::create(cluster.endpoint(), cluster.store(), specs.tables, specs.seed,
                                     client_options(config, cluster));
    tables = std::make_unique<ShardTables>(specs, config.train, cluster, *shards, is_cached, pool);
    store = shards.get();
  } else {
    auto local = std::make_unique<LocalTables>(specs, pool);
    if (is_cached) store = &local->row_store();
    if (is_cached && config.embedding.cache.host_rows == job::HostRows::kRegistered) {
      local->register_rows(*device);
    }
    tables = std::move(local);
  }
  if (is_cached) {
    const bool stays = cluster.size() == 1 || device_ranks;  // rows, on their way to the network
    const backend::Stream* const shared = stays ? stream.get() : nullptr;
    tables = std::make_unique<CachedTables>(
        specs, std::move(tables), *store,
        cache_options(config, cluster, cache_bytes, shared, times.get()), *device, pool, cluster,
        device_ranks.get());
  }
  const dense::InputShape shape = input_shape(schema, specs, config.model);
  std::optional<dense::DensePlace> place;
  if (stream) place.emplace(*device, *stream, times.get());
  network = make_network ? make_network(shape, pool)
                         : dense::DenseNetwork::create(config.model, config.dense_optimizer,
                                                       config.train.precision, shape, specs.seed,
                                                       pool, place ? &*place : nullptr);
  if (config.is_on_gpu()) {
    plan_gpu_memory(config, cluster, *device, shape, *network,
                    tables->access().on_device() != nullptr, device_ranks != nullptr, cache_bytes,
                    available);
  }
}

}  // namespace satrap::pipeline
