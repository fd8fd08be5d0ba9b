#include "satrap/dense/precision.h"

#include <gtest/gtest.h>

namespace satrap::dense {
namespace {

TEST(Precision, TheFastestIsByWhatTheCpuIs) {
  const Cpu zen4{"", "AuthenticAMD", {"avx512f", "avx512_bf16"}},
      zen3{"", "AuthenticAMD", {"avx2"}};
  const Cpu sapphire_rapids{"", "GenuineIntel", {"avx512_bf16", "amx_tile", "amx_bf16"}};
  const Cpu cooper_lake{"", "GenuineIntel", {"avx512f", "avx512_bf16"}};
  const Cpu grace{"ARM Neoverse V2", "0x41", {"sve2", "bf16"}};
  EXPECT_EQ(fastest_precision(zen4), Precision::kBf16);
  EXPECT_EQ(fastest_precision(sapphire_rapids), Precision::kBf16);
  for (const Cpu& cpu : {zen3, cooper_lake, grace}) {
    EXPECT_EQ(fastest_precision(cpu), Precision::kFp32) << cpu.vendor;
  }
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
