// How fast text becomes rows and batches, with files in the page cache.
//
//   data_reader_bench --benchmark_filter=Parse    # one core: rows per second of the parser alone

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <benchmark/benchmark.h>
#include <zlib.h>

#include "satrap/core/hash.h"
#include "satrap/core/log.h"
#include "satrap/data/open_rows.h"
#include "src/data/text/line_cutter.h"
#include "src/data/text/row_parser.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kRows = 200'000;

/// A log with the shape of Criteo Kaggle: blanks, small counts, 8 hex digits.
std::string criteo_text(std::int64_t num_rows) {
  const RandomStream random{42};
  std::uint64_t draw = 0;
  std::string text;
  char field[32];
  for (std::int64_t r = 0; r < num_rows; ++r) {
    text += random.uniform(draw++) < 0.25F ? '1' : '0';
    for (int i = 0; i < 13; ++i) {
      text += '\t';
      const float u = random.uniform(draw++);
      if (u < 0.2F) continue;
      const std::uint64_t digits = random.below(draw++, 4) + 1;
      const std::uint64_t bound = digits == 1 ? 10 : digits == 2 ? 100 : digits == 3 ? 1000 : 10000;
      text += std::to_string(random.below(draw++, bound));
    }
    for (int i = 0; i < 26; ++i) {
      text += '\t';
      if (random.uniform(draw++) < 0.1F) continue;
      std::snprintf(field, sizeof(field), "%08x", static_cast<unsigned>(random.bits(draw++)));
      text += field;
    }
    text += '\n';
  }
  return text;
}

/// Files in the temporary folder, written once per process.
class Files {
 public:
  Files() : folder_(std::filesystem::temp_directory_path() / "satrap_reader_bench") {
    std::filesystem::create_directories(folder_);
    const std::string text = criteo_text(kRows);
    std::ofstream(plain(), std::ios::binary) << text;
    std::string columns = "label";
    for (int i = 1; i <= 13; ++i) columns += ",I" + std::to_string(i);
    for (int i = 1; i <= 26; ++i) columns += ",C" + std::to_string(i);
    std::string fields = text;
    std::ranges::replace(fields, '\t', ',');
    std::ofstream(csv(), std::ios::binary) << columns << '\n' << fields;
  }
  ~Files() { std::filesystem::remove_all(folder_); }

  std::string plain() const { return (folder_ / "log.tsv").string(); }
  std::string csv() const { return (folder_ / "log.csv").string(); }
  std::string cache() const { return (folder_ / "cache").string(); }
  /// The plain one, packed at the first call: that takes seconds.
  std::string gzip() const {
    const std::string path = (folder_ / "log.tsv.gz").string();
    if (std::filesystem::exists(path)) return path;
    std::ostringstream text;
    text << std::ifstream(plain(), std::ios::binary).rdbuf();
    gzFile packed = gzopen(path.c_str(), "wb6");
    gzwrite(packed, text.view().data(), static_cast<unsigned>(text.view().size()));
    gzclose(packed);
    return path;
  }

 private:
  std::filesystem::path folder_;
};

const Files& files() {
  static const Files kFiles;
  return kFiles;
}

DataConfig criteo(const std::string& path) {
  DataConfig config;
  config.schema_name = "criteo";
  config.train.path = {path};
  config.reader_threads = 1;
  return config;
}

/// The same rows as any CSV: quotes may come, and ids are texts.
DataConfig csv() {
  DataConfig config;
  config.train.path = {files().csv()};
  config.schema.numeric = {{.name = "I1..I13"}};
  config.schema.features.emplace_back().name = "C1..C26";
  config.reader_threads = 1;
  return config;
}

void count_rows(benchmark::State& state, std::int64_t rows) {
  state.counters["rows/s"] =
      benchmark::Counter(static_cast<double>(rows), benchmark::Counter::kIsRate);
}

void cut(benchmark::State& state, const DataConfig& config) {
  const Schema schema = resolve_schema(config);
  std::int64_t rows = 0;
  for (auto _ : state) {
    LineCutter cutter(schema, config.train.path, {}, {});
    TextBlock block;
    while (cutter.next(block)) rows += block.num_lines;
  }
  count_rows(state, rows);
}
void BM_Cut(benchmark::State& state) { cut(state, criteo(files().plain())); }
void BM_CutCsv(benchmark::State& state) { cut(state, csv()); }
BENCHMARK(BM_Cut)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_CutCsv)->Unit(benchmark::kMillisecond);

/// The yardstick of BM_BatchesGzip: zlib alone.
void BM_Zlib(benchmark::State& state) {
  std::string buffer(std::size_t{1} << 20, '\0');
  std::int64_t rows = 0;
  for (auto _ : state) {
    gzFile packed = gzopen(files().gzip().c_str(), "rb");
    while (gzread(packed, buffer.data(), static_cast<unsigned>(buffer.size())) > 0) {
    }
    gzclose(packed);
    rows += kRows;
  }
  count_rows(state, rows);
}
BENCHMARK(BM_Zlib)->Unit(benchmark::kMillisecond);

void parse(benchmark::State& state, const DataConfig& config) {
  const Schema schema = resolve_schema(config);
  LineCutter cutter(schema, config.train.path, {}, {});
  TextBlock text;
  cutter.next(text);
  RowParser parser(schema, {});
  RowBlock block;
  BadRows bad;
  std::int64_t rows = 0;
  for (auto _ : state) {
    parser.parse(text, block, bad);
    rows += block.num_rows;
  }
  count_rows(state, rows);
}
void BM_Parse(benchmark::State& state) { parse(state, criteo(files().plain())); }
void BM_ParseCsv(benchmark::State& state) { parse(state, csv()); }
BENCHMARK(BM_Parse)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_ParseCsv)->Unit(benchmark::kMicrosecond);

/// The whole path to a batch. Run it under `taskset -c 0` for the rate of one core.
std::int64_t read_all(const DataConfig& config) {
  const Schema schema = resolve_schema(config);
  const auto batches =
      open_batches(Dataset(config), fixed_transforms(schema), Role::kTrain, {.batch_size = 2048});
  std::int64_t rows = 0;
  Batch batch;
  while (batches->next(batch)) rows += batch.num_examples;
  return rows;
}

void read_batches(benchmark::State& state, DataConfig config, std::int64_t shuffle_rows) {
  config.shuffle_rows = shuffle_rows;
  std::int64_t rows = 0;
  for (auto _ : state) rows += read_all(config);
  count_rows(state, rows);
}
/// From the cache of parsed rows, which is complete before.
void BM_BatchesCached(benchmark::State& state) {
  set_log_level(LogLevel::kWarning);
  DataConfig config = criteo(files().plain());
  config.cache.folder = files().cache();
  read_all(config);
  std::int64_t rows = 0;
  for (auto _ : state) rows += read_all(config);
  count_rows(state, rows);
}
/// The same while they are written into the cache.
void BM_BatchesIntoCache(benchmark::State& state) {
  set_log_level(LogLevel::kWarning);
  DataConfig config = criteo(files().plain());
  config.cache.folder = files().cache();
  std::int64_t rows = 0;
  for (auto _ : state) {
    std::filesystem::remove_all(config.cache.folder);
    rows += read_all(config);
  }
  count_rows(state, rows);
}
void BM_BatchesPlain(benchmark::State& state) { read_batches(state, criteo(files().plain()), 0); }
void BM_BatchesCsv(benchmark::State& state) { read_batches(state, csv(), 0); }
void BM_BatchesGzip(benchmark::State& state) { read_batches(state, criteo(files().gzip()), 0); }
void BM_BatchesShuffled(benchmark::State& state) {
  read_batches(state, criteo(files().plain()), 50'000);
}
BENCHMARK(BM_BatchesCached)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_BatchesIntoCache)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_BatchesPlain)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_BatchesCsv)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_BatchesGzip)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_BatchesShuffled)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

}  // namespace
}  // namespace satrap::data
