// How fast Parquet becomes rows and batches, with files in the page cache, beside Arrow's own
// readers of columns.
//
//   taskset -c 0 data_parquet_bench    # one core

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <arrow/memory_pool.h>
#include <benchmark/benchmark.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include "satrap/core/hash.h"
#include "satrap/data/open_rows.h"
#include "src/data/columnar/parquet_rows.h"
#include "tests/data_parquet/parquet_table.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kRows = 500'000;
constexpr std::int64_t kRowsPerGroup = 100'000;

/// A log with the shape of Criteo Kaggle: a label, 13 counts with blanks, 26 texts of 8 hex digits,
/// the more frequent the smaller, out of as many as there; and `row`, its number.
ParquetTable criteo_table() {
  const RandomStream random{42};
  const SyntheticConfig shape;
  std::uint64_t draw = 0;
  std::vector<std::pair<std::string, std::shared_ptr<arrow::Array>>> columns;
  for (int i = 0; i < 14; ++i) {
    Maybe<std::int64_t> values;
    for (std::int64_t r = 0; r < kRows; ++r) {
      const bool is_missing = i > 0 && random.uniform(draw++) < 0.2F;
      const std::int64_t count =
          i == 0 ? (random.uniform(draw++) < 0.25F ? 1 : 0)
                 : static_cast<std::int64_t>(std::pow(10.0F, 4.0F * random.uniform(draw++)));
      values.push_back(is_missing ? std::nullopt : std::optional(count));
    }
    columns.emplace_back(i == 0 ? "label" : "I" + std::to_string(i), int64s(values));
  }
  for (std::size_t i = 0; i < shape.cardinalities.size(); ++i) {
    Maybe<std::string> values;
    char text[16];
    for (std::int64_t r = 0; r < kRows; ++r) {
      const auto rank = static_cast<std::uint64_t>(
          std::pow(static_cast<float>(shape.cardinalities[i]), random.uniform(draw++)));
      std::snprintf(text, sizeof(text), "%08x", static_cast<unsigned>(hash64(i, rank)));
      const bool is_missing = random.uniform(draw++) < 0.1F;
      values.push_back(is_missing ? std::nullopt : std::optional<std::string>(text));
    }
    columns.emplace_back("C" + std::to_string(i + 1), strings(values));
  }
  Maybe<std::int64_t> numbers;
  for (std::int64_t r = 0; r < kRows; ++r) numbers.emplace_back(r);
  columns.emplace_back("row", int64s(numbers));
  return ParquetTable(columns);
}

/// Files in the temporary folder, written once per process.
class Files {
 public:
  Files() : folder_(std::filesystem::temp_directory_path() / "satrap_parquet_bench") {
    std::filesystem::create_directories(folder_);
    const ParquetTable table = criteo_table();
    table.write(zstd(), kRowsPerGroup, true, parquet::Compression::ZSTD);
    table.write(snappy(), kRowsPerGroup, false, parquet::Compression::SNAPPY);
  }
  ~Files() { std::filesystem::remove_all(folder_); }

  std::string zstd() const { return (folder_ / "zstd.parquet").string(); }
  std::string snappy() const { return (folder_ / "snappy.parquet").string(); }

 private:
  std::filesystem::path folder_;
};

const Files& files() {
  static const Files kFiles;
  return kFiles;
}

void count_rows(benchmark::State& state, std::int64_t rows) {
  state.counters["rows/s"] =
      benchmark::Counter(static_cast<double>(rows), benchmark::Counter::kIsRate);
}

template <class Type>
std::int64_t read_column(parquet::ColumnReader& reader) {
  constexpr std::int64_t kBatch = 2048;
  auto& typed = static_cast<parquet::TypedColumnReader<Type>&>(reader);
  std::vector<std::int16_t> levels(kBatch);
  std::vector<typename Type::c_type> values(kBatch);
  std::int64_t rows = 0;
  while (reader.HasNext()) {
    std::int64_t num_values = 0;
    rows += typed.ReadBatch(kBatch, levels.data(), nullptr, values.data(), &num_values);
    benchmark::DoNotOptimize(values.data());
  }
  return rows;
}

/// The yardstick: the values of each column, one after the other, and nothing made of them.
void arrow_columns(benchmark::State& state, const std::string& path) {
  std::int64_t rows = 0;
  for (auto _ : state) {
    const auto file = parquet::ParquetFileReader::OpenFile(path);
    for (int g = 0; g < file->metadata()->num_row_groups(); ++g) {
      const auto group = file->RowGroup(g);
      for (int c = 0; c < file->metadata()->num_columns(); ++c) {
        const auto reader = group->Column(c);
        const bool is_text = reader->type() == parquet::Type::BYTE_ARRAY;
        const std::int64_t read = is_text ? read_column<parquet::ByteArrayType>(*reader)
                                          : read_column<parquet::Int64Type>(*reader);
        if (c == 0) rows += read;
      }
    }
  }
  count_rows(state, rows);
}

/// Counts the rows of the file, whether `where` selects them or not.
void batches(benchmark::State& state, const std::string& path, const std::string& where = "") {
  DataConfig config;
  config.schema_name = "criteo";
  config.train.path = {path};
  config.train.where = where;
  config.reader_threads = 1;
  const Schema schema = resolve_schema(config);
  std::int64_t passes = 0;
  for (auto _ : state) {
    const auto source =
        open_batches(Dataset(config), fixed_transforms(schema), Role::kTrain, {.batch_size = 2048});
    Batch batch;
    while (source->next(batch)) benchmark::DoNotOptimize(batch.ids.data());
    ++passes;
  }
  count_rows(state, passes * kRows);
}

void BM_ArrowZstd(benchmark::State& state) { arrow_columns(state, files().zstd()); }
void BM_ArrowSnappyPlain(benchmark::State& state) { arrow_columns(state, files().snappy()); }
void BM_BatchesZstd(benchmark::State& state) { batches(state, files().zstd()); }
void BM_BatchesSnappyPlain(benchmark::State& state) { batches(state, files().snappy()); }
void BM_WhereAll(benchmark::State& state) { batches(state, files().zstd(), "row >= 0"); }
void BM_WhereFifth(benchmark::State& state) { batches(state, files().zstd(), "row < 100000"); }
void BM_WhereScattered(benchmark::State& state) { batches(state, files().zstd(), "I1 < 10"); }
BENCHMARK(BM_ArrowZstd)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_ArrowSnappyPlain)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_BatchesZstd)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_BatchesSnappyPlain)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_WhereAll)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_WhereFifth)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_WhereScattered)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

}  // namespace
}  // namespace satrap::data
