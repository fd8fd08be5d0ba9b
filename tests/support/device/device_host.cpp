#include "tests/support/device/device.h"

namespace satrap::testing {

Readiness device_readiness() { return {}; }

backend::Device& device() {
  static const auto host = backend::make_host_device();
  return *host;
}

void for_each_schedule(const std::function<void()>& check) { check(); }

}  // namespace satrap::testing
