#include "satrap/pipeline/model.h"

#include <algorithm>
#include <optional>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/data/row_count.h"
#include "satrap/dense/precision.h"
#include "satrap/embedding/feature_layout.h"
#include "satrap/job/config_place.h"
#include "satrap/job/read_job.h"
#include "satrap/pipeline/cached_tables.h"
#include "satrap/pipeline/load_job.h"
#include "satrap/pipeline/local_tables.h"
#include "satrap/pipeline/shard_tables.h"
#include "src/pipeline/gpu_of_rank.h"
#include "src/pipeline/memory_plan.h"
#include "src/pipeline/partitioned_rows.h"

namespace satrap::pipeline {
namespace {

dense::InputShape input_shape(const data::Schema& schema, const job::EmbeddingSpecs& specs) {
  dense::InputShape shape;
  shape.label_weights.clear();
  for (const data::NamedLabelConfig& label : schema.labels) {
    shape.label_weights.push_back(static_cast<float>(label.weight));
  }
  const std::int64_t num_numeric = schema.num_numeric_outputs();
  const embedding::FeatureLayout layout(specs.features, specs.tables);
  const embedding::FeatureLayout on_device(specs.features, specs.tables,
                                           embedding::FeatureLayout::kDeviceColumns);
  shape.device_width = on_device.output_width;
  for (std::size_t f = 0; f < layout.features.size(); ++f) {
    const embedding::PlacedFeature& feature = layout.features[f];
    const embedding::PlacedFeature& there = on_device.features[f];
    if (feature.spec.pooling == Pooling::kSequence) {
      shape.sequences.push_back({.first_field = std::ssize(shape.field_widths),
                                 .length = feature.spec.max_length,
                                 .mask_column = num_numeric + feature.mask_column});
    }
    for (std::int64_t i = 0; i < feature.spec.max_length; ++i) {
      shape.field_widths.push_back(feature.dim);
      shape.device_columns.push_back(there.column + i * there.vector_width);
      shape.field_names.push_back(feature.spec.name);
    }
  }
  shape.num_numeric = num_numeric + layout.mask_width;
  return shape;
}

FloatType encoding_of(const std::string& wire) {
  if (wire == "bf16") return FloatType::kBf16;
  return wire == "fp16" ? FloatType::kFp16 : FloatType::kFp32;
}

ps::ShardClient::Options client_options(const job::JobConfig& job, const Cluster& cluster) {
  return {.rank = cluster.rank(),
          .num_shards = cluster.config().num_shards,
          .encoding = encoding_of(job.embedding.wire),
          .timeout_ms = cluster.timeout_ms(),
          .stop = cluster.stop()};
}

constexpr std::int64_t kMaxExamplesAhead = 1 << 20;  // read before it is their turn

/// Several ranks plan a batch together to look at it: that costs them more than it saves, but where
/// the store is slow (bench/README.md).
backend::EvictionPolicy policy_of(const std::string& eviction, std::int64_t num_ranks) {
  if (eviction == "auto") return policy_of(num_ranks == 1 ? "lookahead" : "lfu", num_ranks);
  if (eviction == "lru") return backend::EvictionPolicy::kLru;
  return eviction == "lfu" ? backend::EvictionPolicy::kLfu : backend::EvictionPolicy::kLookahead;
}

/// The bound of the order in which lookups and updates run, if it is fixed: with several ranks it
/// always is. Where it is not asked for, it must not cost more staleness than it has to.
table::StalenessBound order_bound(const job::TrainConfig& train, std::int64_t num_ranks) {
  const table::StalenessBound bound = train.staleness_bound();
  if (train.deterministic) return bound;
  if (num_ranks == 1) return 0;
  return {std::min<std::int64_t>(1, bound.max()), bound.factor()};
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

/// Once per job, where a user may wonder.
void say_why_not_on_gpu(const job::JobConfig& config, const Cluster& cluster) {
  if (config.why_not_on_gpu.empty() || !cluster.is_chief()) return;
  log_info("device: auto is cpu, for this job cannot use the GPU: {}", config.why_not_on_gpu);
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
    log_info("the ranks exchange rows and gradients {}",
             device_ranks ? "from GPU to GPU, by NCCL" : concat("in the host's memory: ", reason));
  }
  return device_ranks;
}

/// What a rank has of the device's memory; several ranks of a node share its memory, but not that
/// of a GPU.
std::int64_t device_bytes(const Cluster& cluster, const backend::Device& device) {
  return device.is_host() ? memory_bytes() / num_local_ranks(cluster) : device.info().free_bytes;
}

std::int64_t max_look_ahead(const job::JobConfig& config) {
  return std::max<std::int64_t>(1, kMaxExamplesAhead / config.data.batch_size);
}

embedding::CachedRows::Options cache_options(const job::JobConfig& config,
                                             const Cluster& cluster,
                                             std::int64_t memory_bytes,
                                             const backend::Stream* stream,
                                             backend::StreamTimes* times) {
  constexpr std::int64_t kLag = 2;  // steps that a device is behind the host
  return {.memory_bytes = memory_bytes,
          .policy = policy_of(config.embedding.cache.eviction, cluster.size()),
          .batch_examples = config.data.batch_size,  // of all ranks, whose keys it may own
          .max_in_flight = config.train.max_in_flight() + (stream == nullptr ? 0 : kLag),
          .update_delay = order_bound(config.train, cluster.size()),
          .max_look_ahead = max_look_ahead(config),
          .looks_ahead_at_once = cluster.size() > 1,
          .num_fetches = config.embedding.store == "ps"
                             ? std::min<std::int64_t>(16, config.train.prefetch_batches)
                             : 1,
          .reads_in_store = config.embedding.cache.host_rows == "registered",
          .stream = stream,
          .times = stream == nullptr ? nullptr : times};
}

embedding::SharedCache::Options copies_options(const job::JobConfig& config,
                                               const Cluster& cluster,
                                               std::int64_t memory_bytes) {
  return {.memory_bytes = memory_bytes,
          .policy = policy_of(config.embedding.cache.eviction, cluster.size()),
          .batch_examples = std::max<std::int64_t>(1, config.data.batch_size / cluster.size()),
          .max_in_flight = config.train.max_in_flight(),
          .max_look_ahead = max_look_ahead(config),
          .looks_ahead_at_once = cluster.size() > 1,
          .staleness = config.train.staleness_bound()};
}

/// Several ranks divide the keys of one cache among them, and exchange rows in every step.
void check_cluster(const Cluster& cluster) {
  if (cluster.size() == 1) return;
  const auto refuse = [](const auto&... what) {
    throw Error(ErrorCode::kInvalidConfig, concat("embedding.cache.", what...));
  };
  const std::int64_t local = cluster.config().num_local_ranks;
  if (local != 0 && local != cluster.size()) {
    refuse("memory: the ranks that share a cache must be on one node, but ", local, " of ",
           cluster.size(),
           " are on this one; write policy: shared, start all on one node, or write 0");
  }
  if (cluster.size() > PartitionedRows::kMaxRanks) {
    refuse("memory: at most ", PartitionedRows::kMaxRanks, " ranks share a cache, there are ",
           cluster.size(), "; start fewer, or write 0");
  }
}

void note_order(const job::TrainConfig& train, const Cluster& cluster) {
  if (cluster.size() == 1 || !cluster.is_chief()) return;
  const std::int64_t bound = order_bound(train, cluster.size()).max();
  if (bound == train.max_staleness()) return;
  log_info("train.staleness: {} counts as {}: ranks that share a cache work in a fixed order",
           train.max_staleness(), bound);
}

/// Replaces `auto` by the precision for this machine. A user's module computes as it is written.
void resolve_precision(job::JobConfig& config) {
  if (config.train.precision != "auto") return;
  const bool bf16 = config.model.type != "torchscript" && !config.uses_graph() &&
                    dense::fastest_precision(inspect_cpu()) == dense::Precision::kBf16;
  config.train.precision = bf16 ? "bf16" : "fp32";
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
       .numbers = shape.num_numeric + shape.num_labels(),
       .num_parameters = config.uses_graph() ? network.num_parameters() : 0,
       .optimizer_values = (optimizer.uses_first() ? 1 : 0) + (optimizer.uses_second() ? 1 : 0),
       .has_libtorch = config.uses_graph() && device.libtorch_gpu() >= 0,
       .exchanges_rows = is_connected && keeps_rows,
       .sums_in_order = is_connected && config.train.deterministic,
       .cache_bytes = cache_bytes,
       .free_bytes = free_bytes});
  plan.check();
  if (cluster.is_chief()) log_info("GPU memory: {}", plan.describe());
}

void check_model(const job::JobConfig& config) {
  const data::Schema schema = data::resolve_schema(config.data);
  dense::check_model(config.model, input_shape(schema, job::embedding_specs(config, schema)));
}

}  // namespace

job::JobConfig load_job(const std::string& path, const std::vector<std::string>& overrides) {
  ConfigOrigins origins;
  job::JobConfig config = job::read_job(path, overrides, origins);
  if (config.device == "auto") {  // else no driver is asked
    job::choose_device(config, origins, backend::why_no_cuda().empty());
  }
  resolve_precision(config);
  data::choose_batch_size(config.data);
  job::with_place(origins, [&] { check_model(config); });
  return config;
}

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
             ThreadPool& pool)
    : specs(job::embedding_specs(config, schema)) {
  const bool has_copies = config.embedding.keeps_copies(cluster.config());
  const bool has_cache = config.embedding.has_cache() && !has_copies;  // of the rows themselves
  say_why_not_on_gpu(config, cluster);
  if (has_cache) {
    check_cluster(cluster);
    note_order(config.train, cluster);
  }
  if (has_cache || has_copies) device = make_device(config, cluster, pool);
  if (config.is_on_gpu() && config.uses_graph()) {
    stream = std::make_unique<backend::Stream>(*device);
    times = std::make_unique<backend::StreamTimes>(*device, *stream);
    device_ranks = connect_devices(config, cluster, *device);
  }
  const std::int64_t available = device ? device_bytes(cluster, *device) : 0;  // beside NCCL's
  const std::int64_t cache_bytes = device ? config.embedding.cache.memory_bytes(available) : 0;
  std::optional<ShardTables::Copies> copies;
  if (has_copies) copies.emplace(copies_options(config, cluster, cache_bytes), *device);
  table::RowStore* store = nullptr;  // what a cache is put in front of
  if (config.embedding.store == "ps") {
    shards = std::make_unique<ps::ShardClient>(cluster.endpoint(), cluster.store(), specs.tables,
                                               specs.seed, client_options(config, cluster));
    tables = std::make_unique<ShardTables>(specs, config.train, cluster, *shards, has_cache, copies,
                                           pool);
    store = shards.get();
  } else {
    auto local = std::make_unique<LocalTables>(specs, pool);
    if (has_cache) store = &local->row_store();
    if (has_cache && config.embedding.cache.host_rows == "registered") {
      local->register_rows(*device);
    }
    tables = std::move(local);
  }
  if (has_cache) {
    const bool stays = cluster.size() == 1 || device_ranks;  // rows, on their way to the network
    const backend::Stream* const shared = stays ? stream.get() : nullptr;
    tables = std::make_unique<CachedTables>(
        specs, std::move(tables), *store,
        cache_options(config, cluster, cache_bytes, shared, times.get()), *device, pool, cluster,
        device_ranks.get());
  }
  const dense::InputShape shape = input_shape(schema, specs);
  std::optional<dense::DensePlace> place;
  if (stream) place.emplace(*device, *stream, times.get());
  network = dense::DenseNetwork::create(config.model, config.dense_optimizer,
                                        dense::precision_named(config.train.precision), shape,
                                        specs.seed, pool, place ? &*place : nullptr);
  if (config.is_on_gpu()) {
    plan_gpu_memory(config, cluster, *device, shape, *network,
                    tables->access().on_device() != nullptr, device_ranks != nullptr, cache_bytes,
                    available);
  }
}

}  // namespace satrap::pipeline
