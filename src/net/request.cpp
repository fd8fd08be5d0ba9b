#include "satrap/net/request.h"

#include <cstring>
#include <utility>

#include "src/net/endpoint_impl.h"
#include "src/net/wire.h"

namespace satrap::net {

RequestBuffer::Memory::Memory(std::shared_ptr<Endpoint::Impl> owner, std::int64_t bytes)
    : endpoint(std::move(owner)),
      memory(endpoint->pool.take(kRequestHeaderBytes + bytes)),
      payload_bytes(bytes) {}

RequestBuffer::Memory::~Memory() { endpoint->pool.give_back(std::move(memory)); }

RequestBuffer::RequestBuffer(const Endpoint& endpoint, std::int64_t bytes)
    : memory_(std::make_shared<Memory>(endpoint.impl(), bytes)) {}

RequestBuffer::RequestBuffer(const Endpoint& endpoint,
                             std::initializer_list<std::span<const std::byte>> parts) {
  std::size_t bytes = 0;
  for (const auto& part : parts) bytes += part.size();
  memory_ = std::make_shared<Memory>(endpoint.impl(), static_cast<std::int64_t>(bytes));
  std::byte* to = payload().data();
  for (const auto& part : parts) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
}

std::span<std::byte> RequestBuffer::payload() const {
  if (!memory_) return {};
  return {memory_->memory.data() + kRequestHeaderBytes,
          static_cast<std::size_t>(memory_->payload_bytes)};
}

}  // namespace satrap::net
