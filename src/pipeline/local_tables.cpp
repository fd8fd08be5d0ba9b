#include "satrap/pipeline/local_tables.h"

#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "satrap/backend/memory.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/core/text.h"
#include "satrap/table/row_file.h"
#include "satrap/table/table_snapshot.h"
#include "src/pipeline/serial_driver.h"

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
      parts_[i].snapshot.reset();  // ends the copying of changed rows
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

}  // namespace

LocalTables::LocalTables(const job::EmbeddingSpecs& specs, ThreadPool& pool) : pool_(pool) {
  std::vector<table::Table*> pointers;
  for (const table::TableSpec& spec : specs.tables) {
    tables_.push_back(std::make_unique<table::Table>(spec, specs.seed));
    pointers.push_back(tables_.back().get());
  }
  access_ = std::make_unique<embedding::TableRows>(specs.features, std::move(pointers), pool);
}

void LocalTables::begin(const InitialRows& rows) {
  for (const table::RowFile& file : rows.files) {
    table::load_rows(file, *tables_[static_cast<std::size_t>(file.table)],
                     {.last_step = rows.step});
  }
}

std::unique_ptr<StepDriver> LocalTables::make_driver(StepQueue& queue,
                                                     StepDriver::Options options,
                                                     StageTimers& timers) {
  return std::make_unique<SerialDriver>(queue, *access_, std::move(options), timers);
}

std::unique_ptr<RowsSnapshot> LocalTables::take_snapshot(std::int64_t step) {
  // Initial rows of the job count as updated in its first step, even before that step.
  return std::make_unique<TablesSnapshot>(tables_, std::max<std::int64_t>(1, step));
}

EmbeddingTables::Size LocalTables::size() {
  Size size;
  for (const auto& table : tables_) {
    size.rows += table->num_rows();
    size.bytes += table->resident_bytes();
  }
  return size;
}

void LocalTables::register_rows(backend::Device& device) {
  const auto is_told = std::make_shared<std::once_flag>();
  const auto register_block = [&device, is_told](std::byte* pages,
                                                 std::int64_t bytes) -> std::shared_ptr<void> {
    std::string why_not = "there is less memory left";
    if (bytes <=
        satrap::memory_bytes() - satrap::resident_bytes()) {  // the driver makes all of it resident
      auto registered = std::make_shared<backend::HostRegistration>(device, pages, bytes);
      if (registered->why_not().empty()) return registered;
      why_not = registered->why_not();
    }
    std::call_once(*is_told, [&] {
      log_warning(
          "embedding.cache.host_rows: rows are staged: {} of a table could not be registered "
          "({}); staged needs no more memory than the rows",
          format_bytes(bytes), why_not);
    });
    return nullptr;
  };
  for (const auto& table : tables_) table->register_blocks(register_block);
}

table::RowStore& LocalTables::row_store() {
  if (!row_store_) {
    std::vector<table::Table*> pointers;
    for (const auto& table : tables_) pointers.push_back(table.get());
    row_store_ = std::make_unique<table::TableRowStore>(std::move(pointers), pool_);
  }
  return *row_store_;
}

}  // namespace satrap::pipeline
