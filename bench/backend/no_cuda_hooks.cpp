#include "bench/backend/cuda_hooks.h"
#include "satrap/core/error.h"

namespace satrap::bench {

bool times_are_of_a_gpu() { return false; }

std::unique_ptr<Setting> set_fetch_granularity(std::int64_t) {
  throw Error(ErrorCode::kUnavailable, "the L2's granularity needs a GPU");
}

}  // namespace satrap::bench
