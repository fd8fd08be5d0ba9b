#include "satrap/pipeline/cached_tables.h"

#include <future>
#include <utility>

#include "satrap/core/error.h"
#include "src/pipeline/partitioned_rows.h"
#include "src/pipeline/serial_driver.h"

namespace satrap::pipeline {
namespace {

constexpr const char* kLostRows = "the rows of the cache did not get into their tables";

using Snapshot = std::unique_ptr<RowsSnapshot>;

/// The snapshot of the tables, which is taken later.
class LaterSnapshot final : public RowsSnapshot {
 public:
  LaterSnapshot(std::future<Snapshot> tables, const embedding::CachedRows& rows)
      : tables_(std::move(tables)), rows_(rows) {}

  std::vector<ps::SnapshotFile> write(const std::string& directory) override {
    try {
      return tables_.get()->write(directory);
    } catch (const std::future_error&) {
      rows_.throw_if_failed();
      throw Error(ErrorCode::kUnavailable, kLostRows);
    }
  }

 private:
  std::future<Snapshot> tables_;
  const embedding::CachedRows& rows_;
};

}  // namespace

CachedTables::CachedTables(const job::EmbeddingSpecs& specs,
                           std::unique_ptr<EmbeddingTables> tables,
                           table::RowStore& store,
                           const embedding::CachedRows::Options& options,
                           backend::Device& device,
                           ThreadPool& pool,
                           Cluster& cluster,
                           collective::DeviceCommunicator* device_ranks)
    : tables_(std::move(tables)),
      bound_(options.update_delay),
      rows_(specs.features,
            specs.tables,
            specs.seed,
            store,
            tables_->access(),
            device,
            pool,
            options) {
  if (cluster.size() == 1) return;
  partitioned_ = std::make_unique<PartitionedRows>(rows_, cluster, device_ranks);
}

CachedTables::~CachedTables() {
  if (partitioned_) partitioned_->leave();
}

embedding::RowAccess& CachedTables::access() {
  if (partitioned_) return *partitioned_;
  return rows_;
}

std::unique_ptr<StepDriver> CachedTables::make_driver(StepQueue& queue,
                                                      StepDriver::Options options,
                                                      StageTimers& timers) {
  if (partitioned_) {
    options.deterministic = true;
    options.staleness = bound_;
  }
  return std::make_unique<SerialDriver>(queue, access(), std::move(options), timers);
}

void CachedTables::flush() {
  rows_.flush();
  if (partitioned_) partitioned_->throw_if_failed();
}

std::unique_ptr<RowsSnapshot> CachedTables::take_snapshot(std::int64_t step) {
  const auto taken = std::make_shared<std::promise<Snapshot>>();
  auto snapshot = std::make_unique<LaterSnapshot>(taken->get_future(), rows_);
  save([this, step, taken] {
    try {
      taken->set_value(tables_->take_snapshot(step));
    } catch (...) {
      taken->set_exception(std::current_exception());
    }
  });
  return snapshot;
}

void CachedTables::join_snapshot() {
  save([] {});
}

/// `take` is called once the store has the rows of all ranks; later rows are put once it returns.
void CachedTables::save(std::function<void()> take) {
  const auto joined = std::make_shared<std::promise<void>>();
  joined_ = joined->get_future();
  rows_.save([this, take = std::move(take), joined] {
    try {
      if (partitioned_) partitioned_->meet();
      take();
      if (partitioned_) partitioned_->meet();
      joined->set_value();
    } catch (...) {
      joined->set_exception(std::current_exception());
      throw;
    }
  });
}

void CachedTables::wait_joined() {
  if (!partitioned_ || !joined_.valid()) return;  // alone: the snapshot waits
  try {
    joined_.get();
  } catch (const std::future_error&) {
    rows_.throw_if_failed();
    throw Error(ErrorCode::kUnavailable, kLostRows);
  }
}

EmbeddingTables::Size CachedTables::size() {
  Size size = tables_->size();
  size.bytes += rows_.counts().bytes;
  return size;
}

}  // namespace satrap::pipeline
