#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/ids.h"
#include "satrap/net/server.h"
#include "src/ps/shard_wire.h"

namespace satrap::ps {

/// Says what is wrong with a request; the message is the answer to it.
template <class... Parts>
[[noreturn]] void refuse(Parts&&... parts) {
  throw Error(ErrorCode::kInvalidData, concat(std::forward<Parts>(parts)...));
}

/// What follows the prefix of a request that has one.
inline std::span<const std::byte> body_of(const net::ServerCall& call) {
  return call.payload().subspan(sizeof(RequestPrefix));
}

/// A body of nothing but keys.
inline std::span<const Key> keys_of(const net::ServerCall& call) {
  const std::span<const std::byte> body = body_of(call);
  if (body.size() % sizeof(Key) != 0) refuse(body.size(), " bytes are no whole number of keys");
  return {reinterpret_cast<const Key*>(body.data()), body.size() / sizeof(Key)};
}

}  // namespace satrap::ps
