#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/ids.h"
#include "satrap/net/server.h"
#include "src/ps/shard_wire.h"

namespace satrap::ps {

/// Throws the error in a request; its message becomes the answer.
template <class... Parts>
[[noreturn]] void refuse(Parts&&... parts) {
  throw Error(ErrorCode::kInvalidData, concat(std::forward<Parts>(parts)...));
}

/// The bytes after the prefix of a request that has one.
inline std::span<const std::byte> body_of(const net::ServerCall& call) {
  return call.payload().subspan(sizeof(RequestPrefix));
}

/// The body of a request that has only keys.
inline std::span<const Key> keys_of(const net::ServerCall& call) {
  const std::span<const std::byte> body = body_of(call);
  if (body.size() % sizeof(Key) != 0) refuse(body.size(), " bytes are not a whole number of keys");
  return {reinterpret_cast<const Key*>(body.data()), body.size() / sizeof(Key)};
}

}  // namespace satrap::ps
