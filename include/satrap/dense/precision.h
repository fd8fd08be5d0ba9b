#pragma once

#include <string>

#include "satrap/core/cpu.h"

namespace satrap::dense {

/// Number format of the operands of matrix products; parameters, gradients, optimizer state and
/// sums are fp32 always. kBf16 rounds the operands and, where libtorch computes the products, these
/// too (what autocast does). It is the faster one only on CPUs that multiply bf16 at a higher rate
/// than fp32 (AMX; AMD since Zen 4).
/// kFp16 does so to fp16, with a loss scale, where libtorch computes the network. kTf32: the
/// operands' 10 leading bits, on GPUs alone.
enum class Precision { kFp32, kBf16, kFp16, kTf32 };

/// By its name in the configuration: "fp32", "bf16", "fp16", "tf32".
Precision precision_named(const std::string& name);

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
