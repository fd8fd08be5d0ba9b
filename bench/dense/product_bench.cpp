// The matrix products of the layers of DLRM-Kaggle and DeepFM on a piece of 512 rows, on one
// thread: <by>/<kind>/<in>x<out>, kind y: y = x W^T, dx: dx = dy W, dW: dW = dy^T x. By each of
// satrap's tiles that this CPU runs, by the BLAS of libtorch, and by oneDNN if it was there when
// this was built (Debian's libdnnl-dev). GFLOP/s are the rates. None adds bias or ReLU here.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <unistd.h>

#include "src/dense/gemm.h"
#include "src/dense/tiled_product.h"

// Libtorch for aarch64 does not export its BLAS.
// NOLINTNEXTLINE(readability-identifier-naming): the name in the Fortran BLAS
extern "C" void sgemm_(const char* transa,
                       const char* transb,
                       const int* m,
                       const int* n,
                       const int* k,
                       const float* alpha,
                       const float* a,
                       const int* lda,
                       const float* b,
                       const int* ldb,
                       const float* beta,
                       float* c,
                       const int* ldc) __attribute__((weak));
// oneDNN's, whose header may be missing; in row-major order.
extern "C" int dnnl_sgemm(char transa,
                          char transb,
                          std::int64_t m,
                          std::int64_t n,
                          std::int64_t k,
                          float alpha,
                          const float* a,
                          std::int64_t lda,
                          const float* b,
                          std::int64_t ldb,
                          float beta,
                          float* c,
                          std::int64_t ldc) __attribute__((weak));

namespace satrap::dense {
namespace {

constexpr std::int64_t kRows = 512;

struct Operands {
  ConstMatrix a;
  bool transpose_a;
  ConstMatrix b;
  bool transpose_b;
  Matrix c;
};

// Row-major, so the column-major BLAS computes the transposed product.
void multiply_by_blas(const Operands& o) {
  const int m = static_cast<int>(o.c.cols), n = static_cast<int>(o.c.rows);
  const int k = static_cast<int>(o.transpose_a ? o.a.rows : o.a.cols);
  const int lda = static_cast<int>(o.b.stride), ldb = static_cast<int>(o.a.stride);
  const float one = 1.0F, zero = 0.0F;
  sgemm_(o.transpose_b ? "T" : "N", o.transpose_a ? "T" : "N", &m, &n, &k, &one, o.b.data, &lda,
         o.a.data, &ldb, &zero, o.c.data, &m);
}

void multiply_by_dnnl(const Operands& o) {
  const std::int64_t depth = o.transpose_a ? o.a.rows : o.a.cols;
  dnnl_sgemm(o.transpose_a ? 'T' : 'N', o.transpose_b ? 'T' : 'N', o.c.rows, o.c.cols, depth, 1.0F,
             o.a.data, o.a.stride, o.b.data, o.b.stride, 0.0F, o.c.data, o.c.stride);
}

using Multiply = std::function<void(const Operands&)>;

void run(benchmark::State& state,
         const std::string& kind,
         std::int64_t in,
         std::int64_t out,
         const Multiply& multiply) {
  const AlignedBuffer x(kRows * in), w(out * in), y(kRows * out),
      result(std::max({kRows * in, out * in, kRows * out}));
  for (const AlignedBuffer* buffer : {&x, &w, &y}) std::ranges::fill(buffer->span(), 0.25F);
  const ConstMatrix xs(x.data(), kRows, in), ws(w.data(), out, in), ys(y.data(), kRows, out);
  const Operands operands =
      kind == "y"    ? Operands{xs, false, ws, true, Matrix(result.data(), kRows, out)}
      : kind == "dx" ? Operands{ys, false, ws, false, Matrix(result.data(), kRows, in)}
                     : Operands{ys, true, xs, false, Matrix(result.data(), out, in)};
  for (auto _ : state) {
    multiply(operands);
    benchmark::ClobberMemory();
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      2e-9 * static_cast<double>(kRows * in * out) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

Multiply by_tiles(const ProductTiles& tiles) {
  return [product = std::make_shared<TiledProduct>(tiles)](const Operands& o) {
    product->multiply(o.a, o.transpose_a, o.b, o.transpose_b, o.c, {});
  };
}

std::vector<std::pair<std::string, Multiply>> all_products() {
  const Cpu cpu = inspect_cpu();
  std::vector<std::pair<std::string, Multiply>> products{{"satrap", by_tiles(fp32_tiles(cpu))}};
#if defined(__x86_64__)
  if (&fp32_tiles(cpu) == &kAvx512Tiles) products.emplace_back("satrap-avx2", by_tiles(kAvx2Tiles));
  if (bf16_tiles(cpu) != nullptr) products.emplace_back("satrap-bf16", by_tiles(*bf16_tiles(cpu)));
#endif
  if (sgemm_ != nullptr) products.emplace_back("libtorch", multiply_by_blas);
  if (dnnl_sgemm != nullptr) products.emplace_back("oneDNN", multiply_by_dnnl);
  return products;
}

}  // namespace

void add_benchmarks() {
  for (const std::string kind : {"y", "dx", "dW"}) {
    for (const auto& [in, out] : std::vector<std::pair<std::int64_t, std::int64_t>>{{13, 512},
                                                                                    {512, 256},
                                                                                    {256, 64},
                                                                                    {64, 16},
                                                                                    {367, 512},
                                                                                    {1677, 64},
                                                                                    {416, 400},
                                                                                    {400, 400}}) {
      for (const auto& [by, multiply] : all_products()) {
        const std::string name =
            by + "/" + kind + "/" + std::to_string(in) + "x" + std::to_string(out);
        benchmark::RegisterBenchmark(
            name.c_str(), [kind, in = in, out = out, multiply = multiply](benchmark::State& state) {
              run(state, kind, in, out, multiply);
            });
      }
    }
  }
}

}  // namespace satrap::dense

int main(int argc, char** argv) {
  // Two libraries of OpenMP may be loaded; each reads this when it is.
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
  }
  satrap::dense::add_benchmarks();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
