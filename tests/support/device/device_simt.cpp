#include <gtest/gtest.h>

#include "tests/support/device/device.h"
#include "tests/support/sanitized.h"
#include "tests/support/simt/executor.h"

namespace satrap::testing {

Readiness device_readiness() { return {}; }

void for_each_schedule(const std::function<void()>& check) {
  constexpr std::uint64_t kSchedules = kSanitized ? 2 : 8;
  for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
    SCOPED_TRACE(::testing::Message() << "schedule " << seed);
    simt::set_seed(seed);
    check();
    if (::testing::Test::HasFatalFailure()) break;
  }
  simt::set_seed(0);
}

backend::Device& device() {
  static const auto executor = backend::make_cuda_device(0);
  return *executor;
}

}  // namespace satrap::testing
