#pragma once

#include <cstdint>

#include "satrap/net/store.h"

namespace satrap::net::store_protocol {

// A client's first message is kMagic, token. Requests follow: Op, key, and the operation's argument
// (kSet value, kWait timeout in ms, kAdd amount). Every message is answered by Status and a text:
// the value, or the reason of a failure. After kRefused the server closes the connection.
inline constexpr std::uint64_t kMagic = 0x31524F5453535350;  // changes with the format

enum class Op : std::uint8_t { kSet, kGet, kWait, kAdd, kErase };
enum class Status : std::uint8_t { kOk, kMissing, kTimeout, kRefused };

inline constexpr std::int64_t kMaxHelloBytes = 4096;
inline constexpr std::int64_t kMaxFrameBytes = Store::kMaxKeyBytes + Store::kMaxValueBytes + 64;

}  // namespace satrap::net::store_protocol
