#pragma once

#include <string>

#include "satrap/backend/device.h"

namespace satrap::backend {

/// 90 for sm_90.
int compute_capability(int number);

/// Empty if the kernels of this build run on this GPU.
std::string why_not_this_gpu(int number);

}  // namespace satrap::backend
