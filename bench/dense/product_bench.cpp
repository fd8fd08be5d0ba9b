// The matrix products of DLRM-Kaggle's layers on a piece of 512 rows, by satrap and by the BLAS of
// libtorch, on one thread: BM_Product/<kind>/<in>/<out>/<0: satrap, 1: BLAS>, kind 0: y = x W^T, 1:
// dx = dy W, 2: dW = dy^T x. GFLOP/s are the rates. Neither adds bias or ReLU here.
#include <algorithm>
#include <vector>

#include <benchmark/benchmark.h>

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
extern "C" void omp_set_num_threads(int threads);

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

void BM_Product(benchmark::State& state) {
  omp_set_num_threads(1);
  if (state.range(3) == 1 && sgemm_ == nullptr) {
    state.SkipWithError("this libtorch exports no BLAS");
    return;
  }
  const std::int64_t kind = state.range(0), in = state.range(1), out = state.range(2);
  const AlignedBuffer x(kRows * in), w(out * in), y(kRows * out),
      result(std::max({kRows * in, out * in, kRows * out}));
  for (const AlignedBuffer* buffer : {&x, &w, &y}) std::ranges::fill(buffer->span(), 0.25F);
  const ConstMatrix xs(x.data(), kRows, in), ws(w.data(), out, in), ys(y.data(), kRows, out);
  const Operands operands =
      kind == 0   ? Operands{xs, false, ws, true, Matrix(result.data(), kRows, out)}
      : kind == 1 ? Operands{ys, false, ws, false, Matrix(result.data(), kRows, in)}
                  : Operands{ys, true, xs, false, Matrix(result.data(), out, in)};
  TiledProduct product(fp32_tiles(inspect_cpu()));
  for (auto _ : state) {
    if (state.range(3) == 1) {
      multiply_by_blas(operands);
    } else {
      product.multiply(operands.a, operands.transpose_a, operands.b, operands.transpose_b,
                       operands.c, {});
    }
    benchmark::ClobberMemory();
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      2e-9 * static_cast<double>(kRows * in * out) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

void layers(benchmark::internal::Benchmark* bench) {
  for (const std::int64_t kind : {0, 1, 2}) {
    for (const auto& [in, out] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {13, 512}, {512, 256}, {256, 64}, {64, 16}, {367, 512}, {1677, 64}}) {
      for (const std::int64_t blas : {0, 1}) bench->Args({kind, in, out, blas});
    }
  }
}
BENCHMARK(BM_Product)->Apply(layers);

}  // namespace
}  // namespace satrap::dense
