// How fast the bytes of a file come through the reader of text, from a store or from this machine:
//
//   SATRAP_BENCH_FILE=s3://bucket/key data_store_bench
//
// bench/stores.py compares it with curl.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "src/data/files/random_file.h"
#include "src/data/files/read_ahead.h"

namespace satrap::data {
namespace {

void BM_ReadAhead(benchmark::State& state) {
  const char* const path = std::getenv("SATRAP_BENCH_FILE");
  if (path == nullptr) {
    state.SkipWithError("SATRAP_BENCH_FILE names no file");
    return;
  }
  const std::shared_ptr<const RandomFile> file = open_random_file(path);  // and connects
  std::vector<char> block(std::size_t{1} << 20);
  for (auto _ : state) {
    ReadAhead bytes(file);
    while (bytes.read(block.data(), block.size()) > 0) benchmark::DoNotOptimize(block.data());
  }
  state.SetBytesProcessed(state.iterations() * file->size());
}
BENCHMARK(BM_ReadAhead)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace satrap::data
