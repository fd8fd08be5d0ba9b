#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "satrap/net/endpoint.h"
#include "src/net/buffer_pool.h"
#include "src/net/gloo_mesh.h"
#include "src/net/monitor.h"

namespace satrap::net {

class Endpoint::Impl {
 public:
  explicit Impl(EndpointOptions opts);

  const EndpointOptions options;
  const std::string address;
  BufferPool pool;
  Monitor monitor;

  /// The devices in turn.
  std::shared_ptr<GlooDevice> next_device() {
    return devices_[next_.fetch_add(1, std::memory_order_relaxed) % devices_.size()];
  }

 private:
  std::vector<std::shared_ptr<GlooDevice>> devices_;
  std::atomic<std::size_t> next_{0};
};

}  // namespace satrap::net
