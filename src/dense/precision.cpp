#include "satrap/dense/precision.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "src/dense/aligned_buffer.h"
#include "src/dense/gemm.h"

namespace satrap::dense {
namespace {

constexpr std::int64_t kRows = 512, kIn = 512, kOut = 256;

double seconds_of_product(Gemm& gemm, ConstMatrix x, ConstMatrix w, Matrix y) {
  const auto start = std::chrono::steady_clock::now();
  gemm.multiply_nt(x, w, y);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Precision fastest_precision(const Cpu& cpu) {
  const bool amx = cpu.has("amx_bf16");
  const bool full_width = cpu.vendor == "AuthenticAMD" && cpu.has("avx512_bf16");
  return amx || full_width ? Precision::kBf16 : Precision::kFp32;
}

ProductRates measure_products() {
  const AlignedBuffer x(kRows * kIn), w(kOut * kIn), y(kRows * kOut);
  std::ranges::fill(x.span(), 0.5F);
  std::ranges::fill(w.span(), 0.25F);
  Gemm fp32(Precision::kFp32), bf16(Precision::kBf16);
  double best_fp32 = std::numeric_limits<double>::infinity(), best_bf16 = best_fp32;
  constexpr int kRepeats = 12;  // alternating, so that other load affects both
  for (int i = 0; i < kRepeats; ++i) {
    const ConstMatrix left(x.data(), kRows, kIn), right(w.data(), kOut, kIn);
    const Matrix out(y.data(), kRows, kOut);
    best_fp32 = std::min(best_fp32, seconds_of_product(fp32, left, right, out));
    best_bf16 = std::min(best_bf16, seconds_of_product(bf16, left, right, out));
  }
  constexpr double kGflop = 2e-9 * kRows * kIn * kOut;
  return {.fp32 = kGflop / best_fp32, .bf16 = kGflop / best_bf16};
}

}  // namespace satrap::dense
