#include "satrap/pipeline/cached_tables.h"

#include <future>
#include <utility>

#include "satrap/core/error.h"
#include "src/pipeline/serial_driver.h"

namespace satrap::pipeline {
namespace {

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
      throw Error(ErrorCode::kUnavailable, "the rows of the cache did not get into their tables");
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
                           ThreadPool& pool)
    : tables_(std::move(tables)),
      device_(backend::make_host_device(&pool)),
      rows_(specs.features,
            specs.tables,
            specs.seed,
            store,
            tables_->access(),
            *device_,
            pool,
            options) {}

CachedTables::~CachedTables() = default;

std::unique_ptr<StepDriver> CachedTables::make_driver(StepQueue& queue,
                                                      StepDriver::Options options,
                                                      StageTimers& timers) {
  return std::make_unique<SerialDriver>(queue, rows_, std::move(options), timers);
}

std::unique_ptr<RowsSnapshot> CachedTables::take_snapshot(std::int64_t step) {
  const auto taken = std::make_shared<std::promise<Snapshot>>();
  auto snapshot = std::make_unique<LaterSnapshot>(taken->get_future(), rows_);
  rows_.save([this, step, taken] {
    try {
      taken->set_value(tables_->take_snapshot(step));
    } catch (...) {
      taken->set_exception(std::current_exception());
    }
  });
  return snapshot;
}

EmbeddingTables::Size CachedTables::size() {
  Size size = tables_->size();
  size.bytes += rows_.counts().bytes;
  return size;
}

}  // namespace satrap::pipeline
