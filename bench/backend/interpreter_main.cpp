// Benchmarks of device operations without a GPU: their kernels run on the executor, or, with
// $SATRAP_PTX_FOLDER, on the interpreter of the PTX in that folder.
#include <cstdlib>
#include <optional>

#include <benchmark/benchmark.h>

#include "tests/support/ptx/program.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  std::optional<ptx::Program> program;
  if (const char* folder = std::getenv("SATRAP_PTX_FOLDER"); folder != nullptr) {
    simt::set_interpreter(
        [&, folder](const auto& launch, const void* kernel, const auto& arguments) {
          if (!program) program.emplace(folder);
          program->launch(launch, kernel, arguments);
        });
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  simt::set_interpreter({});
}
