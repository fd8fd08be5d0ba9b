#pragma once

#include "satrap/core/cpu.h"
#include "satrap/job/precision.h"

namespace satrap::dense {

using job::Precision;

/// The precision in which a CPU multiplies matrices fastest, decided by its features and not by
/// timing, so that a machine always gets the same answer: bf16 with AMX, and on AMD's cores with
/// AVX512_BF16 (since Zen 4); fp32 on all others. Intel's cores with AVX512_BF16 but without AMX do
/// bf16 at half the rate of fp32; ARM's with bf16 have not been measured.
Precision fastest_precision(const Cpu& cpu);

/// Rates in GFLOP/s of a product as large as DLRM's largest layer, on the calling thread.
struct ProductRates {
  double fp32 = 0.0;
  double bf16 = 0.0;
};

/// Takes some 50 ms.
ProductRates measure_products();

}  // namespace satrap::dense
