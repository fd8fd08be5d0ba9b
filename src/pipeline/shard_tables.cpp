#include "satrap/pipeline/shard_tables.h"

#include <filesystem>
#include <random>
#include <span>
#include <utility>

#include "src/pipeline/shard_driver.h"

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

std::uint64_t random_session() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device() | 1U;
}

}  // namespace

ShardTables::ShardTables(const job::EmbeddingSpecs& specs,
                         const job::TrainConfig& train,
                         Cluster& cluster,
                         ps::ShardClient& client,
                         bool is_cached,
                         ThreadPool& pool)
    : train_(train),
      cluster_(cluster),
      client_(client),
      is_cached_(is_cached),
      access_(specs.features, specs.tables, client, pool) {}

void ShardTables::begin(const InitialRows& rows) {
  std::uint64_t session = 0;
  if (cluster_.is_chief()) {
    ps::ShardJob job;
    job.session = session = random_session();
    job.num_ranks = cluster_.size();
    job.async = train_.is_async();
    job.staleness = train_.staleness_bound();
    job.deterministic = train_.deterministic;
    job.first_step = rows.step + 1;
    job.is_cached = is_cached_;
    job.row_files = rows.files;
    client_.begin(job);
  }
  if (cluster_.size() == 1) return;
  // The other ranks join the chief's session once the shards have it.
  const auto group = cluster_.make_communicator("shards");
  group->broadcast(std::as_writable_bytes(std::span(&session, 1)), 0, cluster_.deadline());
  if (!cluster_.is_chief()) client_.join(session);
}

std::unique_ptr<StepDriver> ShardTables::make_driver(StepQueue& queue,
                                                     StepDriver::Options options,
                                                     StageTimers& timers) {
  return std::make_unique<ShardDriver>(queue, access_, client_, std::move(options), timers);
}

std::unique_ptr<RowsSnapshot> ShardTables::take_snapshot(std::int64_t step) {
  client_.begin_snapshot(step);
  return std::make_unique<ShardsSnapshot>(client_);
}

EmbeddingTables::Size ShardTables::size() {
  Size size;
  for (const ps::ShardStats& shard : client_.stats()) {
    size.rows += shard.rows;
    size.bytes += shard.table_bytes;
  }
  return size;
}

}  // namespace satrap::pipeline
