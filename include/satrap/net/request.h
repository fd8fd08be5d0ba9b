#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "satrap/net/endpoint.h"

namespace satrap::net {

/// The operation that a request asks for; users assign the numbers below kFirstReservedOp.
using Op = std::uint32_t;
inline constexpr Op kFirstReservedOp = 0xFFFF0000;

/// The client and the number of a request. They stay the same after a reconnect, so that a server
/// can apply a repeated request once (see SequenceFilter).
struct RequestTag {
  std::uint64_t client = 0;    // random for each client object; 0: no client
  std::uint64_t sequence = 0;  // from 1, without gaps
  std::int64_t step = 0;
  std::int32_t rank = -1;
};

/// The bytes of one request, written in place by the caller and sent from there. A handle: copies
/// share the memory; the last of them returns it to the endpoint's pool.
class RequestBuffer {
 public:
  RequestBuffer() = default;

  /// Memory for `bytes` of payload, not initialised, aligned to 64 bytes.
  RequestBuffer(const Endpoint& endpoint, std::int64_t bytes);

  /// A copy of `parts`, one after the other.
  RequestBuffer(const Endpoint& endpoint, std::initializer_list<std::span<const std::byte>> parts);

  std::span<std::byte> payload() const;

  struct Memory;  // of this module
  Memory* memory() const { return memory_.get(); }

 private:
  std::shared_ptr<Memory> memory_;
};

}  // namespace satrap::net
