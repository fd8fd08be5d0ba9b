#pragma once

#include "satrap/core/choice.h"

namespace satrap::job {

/// Number format of the operands of the dense network's matrix products; parameters, gradients,
/// optimizer state and sums are fp32 always. kBf16 rounds the operands and, where libtorch computes
/// the products, these too (what autocast does). It is the faster one only on CPUs that multiply
/// bf16 at a higher rate than fp32 (AMX; AMD since Zen 4).
/// kFp16 does so to fp16, with a loss scale, where libtorch computes the network. kTf32: the
/// operands' 10 leading bits, on GPUs alone. kAuto: the faster one, until load_job has chosen it.
enum class Precision { kFp32, kBf16, kFp16, kTf32, kAuto };
inline constexpr Choice<Precision> kPrecisions[] = {{"fp32", Precision::kFp32},
                                                    {"bf16", Precision::kBf16},
                                                    {"fp16", Precision::kFp16},
                                                    {"tf32", Precision::kTf32},
                                                    {"auto", Precision::kAuto}};

}  // namespace satrap::job
