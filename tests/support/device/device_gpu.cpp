#include <cstdlib>
#include <string_view>

#include "satrap/backend/device.h"
#include "tests/support/device/device.h"

namespace satrap::testing {

Readiness device_readiness() {
  const std::string reason = backend::why_no_cuda();
  if (reason.empty()) return {};
  const char* required = std::getenv("SATRAP_REQUIRE_GPU");
  return {"no GPU: " + reason, required != nullptr && std::string_view(required) == "1"};
}

void for_each_schedule(const std::function<void()>& check) { check(); }

backend::Device& device() {
  static const auto gpu = backend::make_cuda_device(0);
  return *gpu;
}

}  // namespace satrap::testing
