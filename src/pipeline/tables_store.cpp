#include "satrap/pipeline/tables_store.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "satrap/core/file.h"
#include "satrap/table/row_file.h"
#include "satrap/table/table_snapshot.h"
#include "src/pipeline/tables_stage.h"

namespace satrap::pipeline {
namespace {

class TablesSnapshot final : public RowsSnapshot {
 public:
  TablesSnapshot(const std::vector<std::unique_ptr<table::Table>>& tables, std::int64_t step) {
    for (const auto& table : tables) {
      parts_.push_back({*table, std::make_unique<table::TableSnapshot>(*table, step)});
    }
  }

  std::vector<ps::SnapshotFile> write(const std::string& directory) override {
    std::vector<ps::SnapshotFile> files;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      ps::SnapshotFile& entry = files.emplace_back();
      entry.table = static_cast<std::int32_t>(i);
      entry.name = fmt::format("table-{}.bin", i);
      FileWriter file(directory + "/" + entry.name);
      entry.rows =
          parts_[i].snapshot->write([&](std::span<const std::byte> rows) { file.write(rows); });
      file.finish();
      entry.row_bytes = parts_[i].table.row_bytes();
      entry.bytes = file.bytes_written();
      entry.xxh3 = to_hex(file.checksum());
      parts_[i].snapshot.reset();  // no more copying aside
    }
    return files;
  }

 private:
  struct Part {
    const table::Table& table;
    std::unique_ptr<table::TableSnapshot> snapshot;
  };
  std::vector<Part> parts_;
};

class TablesReader final : public RowReader {
 public:
  explicit TablesReader(std::unique_ptr<embedding::EmbeddingWorker> worker)
      : worker_(std::move(worker)) {}

  void look_up(const data::Batch& batch,
               std::vector<float>& pooled,
               std::vector<float>& mask) override {
    const auto rows = static_cast<std::size_t>(batch.num_rows);
    pooled.resize(rows * static_cast<std::size_t>(worker_->output_width()));
    mask.resize(rows * static_cast<std::size_t>(worker_->mask_width()));
    worker_->plan_without_insert(batch, plan_, missing_);
    worker_->forward(plan_, batch, pooled, mask);
  }

 private:
  const std::unique_ptr<embedding::EmbeddingWorker> worker_;
  embedding::Plan plan_;
  std::vector<std::byte> missing_;
};

}  // namespace

TablesStore::TablesStore(const job::EmbeddingSpecs& specs, ThreadPool& pool)
    : specs_(specs), pool_(pool) {
  for (const table::TableSpec& spec : specs.tables) {
    tables_.push_back(std::make_unique<table::Table>(spec, specs.seed));
  }
  worker_ = make_worker();
}

std::unique_ptr<embedding::EmbeddingWorker> TablesStore::make_worker() const {
  std::vector<table::Table*> pointers;
  for (const auto& table : tables_) pointers.push_back(table.get());
  return std::make_unique<embedding::EmbeddingWorker>(specs_.features, std::move(pointers), pool_);
}

void TablesStore::begin(const InitialRows& rows) {
  for (const table::RowFile& file : rows.files) {
    table::load_rows(file, *tables_[static_cast<std::size_t>(file.table)],
                     {.last_step = rows.step});
  }
}

std::unique_ptr<EmbeddingStage> TablesStore::make_stage(EmbeddingStage::Options options,
                                                        StageTimers& timers) {
  return std::make_unique<TablesStage>(*worker_, std::move(options), timers);
}

// With its own worker: the one of the stage may be planning later steps at this moment.
std::unique_ptr<RowReader> TablesStore::make_reader() {
  return std::make_unique<TablesReader>(make_worker());
}

std::unique_ptr<RowsSnapshot> TablesStore::take_snapshot(std::int64_t step) {
  // Rows that the job began with count as updated in its first step, even before there is one.
  return std::make_unique<TablesSnapshot>(tables_, std::max<std::int64_t>(1, step));
}

EmbeddingStore::Size TablesStore::size() {
  Size size;
  for (const auto& table : tables_) {
    size.rows += table->num_rows();
    size.bytes += table->resident_bytes();
  }
  return size;
}

}  // namespace satrap::pipeline
