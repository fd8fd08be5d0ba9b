#include "satrap/dense/precision.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace satrap::dense {
namespace {

TEST(Precision, TheFastestIsByWhatTheCpuIs) {
  std::ifstream file("/proc/cpuinfo");
  const std::string cpu{std::istreambuf_iterator<char>(file), {}};
  const auto has = [&](const char* text) { return cpu.find(text) != std::string::npos; };
  const bool bf16 = has("amx_bf16") || (has("AuthenticAMD") && has("avx512_bf16"));
  EXPECT_EQ(fastest_precision(), bf16 ? Precision::kBf16 : Precision::kFp32);
}

TEST(Precision, RatesOfProductsArePossible) {
  const ProductRates rates = measure_products();
  for (const double rate : {rates.fp32, rates.bf16}) {
    EXPECT_GT(rate, 0.01);
    EXPECT_LT(rate, 1e5);  // GFLOP/s of a thread
  }
}

}  // namespace
}  // namespace satrap::dense
