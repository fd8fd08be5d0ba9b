#include "satrap/net/endpoint.h"

#include <csignal>
#include <exception>
#include <filesystem>
#include <utility>

#include "satrap/core/error.h"
#include "src/net/endpoint_impl.h"
#include "src/net/proof.h"
#include "src/net/socket.h"

namespace satrap::net {
namespace {

// Gloo writes with writev(2), which has no flag against the signal. A handler set by the program
// stays.
void ignore_sigpipe() {
  struct sigaction action{};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, nullptr);
  }
}

EndpointOptions checked(EndpointOptions options) {
  SATRAP_CHECK(options.num_devices >= 1, "num_devices must be positive, got ", options.num_devices);
  SATRAP_CHECK(options.heartbeat_interval_ms >= 1 &&
                   options.heartbeat_timeout_ms > options.heartbeat_interval_ms,
               "heartbeats every ", options.heartbeat_interval_ms, " ms with a timeout of ",
               options.heartbeat_timeout_ms, " ms");
  check_gloo_is_ours();
  ignore_sigpipe();
  return options;
}

}  // namespace

Endpoint::Impl::Impl(EndpointOptions opts)
    : options(checked(std::move(opts))),
      address(resolve_address(options.interface)),
      monitor(options.heartbeat_interval_ms, options.heartbeat_timeout_ms) {
  check_token(options.token, address);
  for (std::int64_t i = 0; i < options.num_devices; ++i) {
    devices_.push_back(make_gloo_device());
  }
}

Endpoint::Endpoint(EndpointOptions options) : impl_(std::make_shared<Impl>(std::move(options))) {}
Endpoint::~Endpoint() = default;
const EndpointOptions& Endpoint::options() const { return impl_->options; }
const std::string& Endpoint::address() const { return impl_->address; }

std::string describe_gloo() {
  try {
    check_gloo_is_ours();
    return std::filesystem::canonical(gloo_path()).string();
  } catch (const std::exception& error) {
    return concat("off: ", error.what());
  }
}

}  // namespace satrap::net
