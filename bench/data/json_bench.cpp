// How fast JSON lines become rows and batches, beside simdjson alone on the same lines, with the
// file in the page cache. The rows are those of Criteo's shape.
//
//   taskset -c 1 data_json_bench --benchmark_repetitions=5    # one core

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>
#include <simdjson.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/data/open_rows.h"
#include "src/data/text/block_parser.h"
#include "src/data/text/line_cutter.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kRows = 100'000;

std::string json_text() {
  const RandomStream random{42};
  std::uint64_t draw = 0;
  std::string text;
  char value[32];
  for (std::int64_t r = 0; r < kRows; ++r) {
    text += random.uniform(draw++) < 0.25F ? "{\"label\":1" : "{\"label\":0";
    for (int i = 1; i <= 13; ++i) {
      const bool is_missing = random.uniform(draw++) < 0.2F;
      std::snprintf(value, sizeof(value), "%d", static_cast<int>(random.below(draw++, 10'000)));
      text += concat(",\"I", i, "\":", is_missing ? "null" : value);
    }
    for (int i = 1; i <= 26; ++i) {
      std::snprintf(value, sizeof(value), "%08x", static_cast<unsigned>(random.bits(draw++)));
      text += concat(",\"C", i, "\":\"", value, "\"");
    }
    text += "}\n";
  }
  return text;
}

/// In the temporary folder, written once per process.
class JsonFile {
 public:
  JsonFile() : path_(std::filesystem::temp_directory_path() / "satrap_json_bench.jsonl") {
    std::ofstream(path_, std::ios::binary) << json_text();
  }
  ~JsonFile() { std::filesystem::remove(path_); }

  DataConfig config() const {
    DataConfig config;
    config.schema_name = "criteo";
    config.format = DataFormat::kJson;
    config.train.path = {path_.string()};
    config.reader_threads = 1;
    return config;
  }

 private:
  std::filesystem::path path_;
};

const JsonFile& json_file() {
  static const JsonFile kFile;
  return kFile;
}

void set_rates(benchmark::State& state, std::int64_t rows, std::int64_t bytes) {
  state.counters["rows/s"] =
      benchmark::Counter(static_cast<double>(rows), benchmark::Counter::kIsRate);
  state.SetBytesProcessed(bytes);
}

/// Calls use(block) again and again for the first block of lines.
template <class Use>
void repeat_block(benchmark::State& state, const Use& use) {
  const Schema schema = resolve_schema(json_file().config());
  LineCutter cutter(schema, json_file().config().train.path, {}, {}, nullptr, FileFormat::kJson);
  TextBlock text;
  cutter.next(text);
  std::int64_t rows = 0;
  for (auto _ : state) {
    use(schema, text);
    rows += text.num_lines;
  }
  set_rates(state, rows, rows / text.num_lines * (text.text_end() - text.text_begin()));
}

/// The yardstick: every key and every value of every line, numbers as their tokens.
void BM_Simdjson(benchmark::State& state) {
  simdjson::ondemand::parser parser;
  repeat_block(state, [&](const Schema&, const TextBlock& text) {
    const char* line = text.text_begin();
    std::size_t sum = 0;
    while (line < text.text_end()) {
      const char* const end = std::find(line, text.text_end(), '\n');
      const auto size = static_cast<std::size_t>(end - line);
      simdjson::ondemand::document document =
          parser.iterate(line, size, size + simdjson::SIMDJSON_PADDING).value();
      for (auto field : document.get_object()) {
        sum += field.unescaped_key().value().size();
        simdjson::ondemand::value value = field.value();
        const std::string_view token = value.raw_json_token();
        sum += token.front() == '"' ? value.get_string().value().size() : token.size();
      }
      line = end + 1;
    }
    benchmark::DoNotOptimize(sum);
  });
}
BENCHMARK(BM_Simdjson)->Unit(benchmark::kMicrosecond);

void BM_ParseJson(benchmark::State& state) {
  std::unique_ptr<BlockParser> parser;
  RowBlock rows;
  BadRows bad;
  repeat_block(state, [&](const Schema& schema, const TextBlock& text) {
    if (!parser) parser = make_block_parser(FileFormat::kJson, schema, {});
    parser->parse(text, rows, bad);
  });
  if (rows.num_rows == 0 || bad.count > 0) state.SkipWithError("bad rows");
}
BENCHMARK(BM_ParseJson)->Unit(benchmark::kMicrosecond);

void BM_BatchesJson(benchmark::State& state) {
  const DataConfig config = json_file().config();
  const Schema schema = resolve_schema(config);
  std::int64_t rows = 0;
  for (auto _ : state) {
    const auto batches =
        open_batches(Dataset(config), fixed_transforms(schema), Role::kTrain, {.batch_size = 2048});
    Batch batch;
    while (batches->next(batch)) rows += batch.num_examples;
  }
  set_rates(state, rows, 0);
}
BENCHMARK(BM_BatchesJson)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

}  // namespace
}  // namespace satrap::data
