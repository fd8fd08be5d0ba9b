#include "satrap/pipeline/shards_store.h"

#include <filesystem>
#include <random>
#include <span>
#include <utility>

#include "satrap/table/table.h"
#include "src/pipeline/shards_stage.h"

namespace satrap::pipeline {
namespace {

class ShardsSnapshot final : public RowsSnapshot {
 public:
  explicit ShardsSnapshot(ps::ShardClient& client) : client_(client) {}

  std::vector<ps::SnapshotFile> write(const std::string& directory) override {
    return client_.write_snapshot(std::filesystem::absolute(directory).string());
  }

 private:
  ps::ShardClient& client_;
};

class ShardsReader final : public RowReader {
 public:
  ShardsReader(const job::EmbeddingSpecs& specs, ps::ShardClient& client, ThreadPool& pool)
      : worker_(specs.features, specs.tables, pool), client_(client) {}

  void look_up(const data::Batch& batch,
               std::vector<float>& pooled,
               std::vector<float>& mask) override {
    const auto rows = static_cast<std::size_t>(batch.num_rows);
    pooled.resize(rows * static_cast<std::size_t>(worker_.output_width()));
    mask.resize(rows * static_cast<std::size_t>(worker_.mask_width()));
    worker_.plan(batch, plan_);
    client_.lookup(plan_.keys, rows_);
    worker_.forward(plan_, batch, rows_.weights(), pooled, mask);
  }

 private:
  embedding::RemoteEmbeddingWorker worker_;
  ps::ShardClient& client_;
  embedding::Plan plan_;
  ps::StepRows rows_;
};

FloatType encoding_of(const std::string& wire) {
  if (wire == "bf16") return FloatType::kBf16;
  return wire == "fp16" ? FloatType::kFp16 : FloatType::kFp32;
}

ps::ShardClient::Options client_options(const job::JobConfig& job, const Cluster& cluster) {
  return {.rank = cluster.rank(),
          .num_shards = cluster.config().num_shards,
          .encoding = encoding_of(job.embedding.wire),
          .timeout_ms = cluster.timeout_ms()};
}

std::uint64_t random_session() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device() | 1U;
}

}  // namespace

ShardsStore::ShardsStore(const job::EmbeddingSpecs& specs,
                         const job::JobConfig& job,
                         Cluster& cluster,
                         ThreadPool& pool)
    : specs_(specs),
      train_(job.train),
      cluster_(cluster),
      pool_(pool),
      worker_(specs.features, specs.tables, pool),
      client_(cluster.endpoint(),
              cluster.store(),
              specs.tables,
              specs.seed,
              client_options(job, cluster)) {}

void ShardsStore::begin(const InitialRows& rows) {
  std::uint64_t session = 0;
  if (cluster_.is_chief()) {
    ps::ShardJob job;
    job.session = session = random_session();
    job.num_ranks = cluster_.size();
    job.async = train_.is_async();
    job.staleness = train_.staleness_bound();
    job.deterministic = train_.deterministic;
    job.first_step = rows.step + 1;
    job.row_files = rows.files;
    client_.begin(job);
  }
  if (cluster_.size() == 1) return;
  // The session of the chief, once the shards have it.
  const auto group = cluster_.make_communicator("shards");
  group->broadcast(std::as_writable_bytes(std::span(&session, 1)), 0, cluster_.deadline());
  if (!cluster_.is_chief()) client_.join(session);
}

std::unique_ptr<EmbeddingStage> ShardsStore::make_stage(EmbeddingStage::Options options,
                                                        StageTimers& timers) {
  return std::make_unique<ShardsStage>(worker_, client_, train_.is_async(), std::move(options),
                                       timers);
}

std::unique_ptr<RowReader> ShardsStore::make_reader() {
  return std::make_unique<ShardsReader>(specs_, client_, pool_);
}

std::unique_ptr<RowsSnapshot> ShardsStore::take_snapshot(std::int64_t step) {
  client_.begin_snapshot(step);
  return std::make_unique<ShardsSnapshot>(client_);
}

EmbeddingStore::Size ShardsStore::size() {
  Size size;
  for (const ps::ShardStats& shard : client_.stats()) {
    size.rows += shard.rows;
    size.bytes += shard.table_bytes;
  }
  return size;
}

}  // namespace satrap::pipeline
