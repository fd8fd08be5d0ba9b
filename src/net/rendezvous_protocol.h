#pragma once

#include <cstdint>

#include "satrap/net/rendezvous.h"

namespace satrap::net::store_protocol {

// After the handshake (handshake.h) with kMagic and an empty request, the client sends requests:
// Op, key, and the operation's argument (kSet value, kWait timeout in ms, kAdd amount). Each is
// answered by Status and a text: the value.
inline constexpr std::uint64_t kMagic = 0x32524F5453535350;  // changes with the format

enum class Op : std::uint8_t { kSet, kGet, kWait, kAdd, kErase };
enum class Status : std::uint8_t { kOk, kMissing, kTimeout };

inline constexpr std::int64_t kMaxFrameBytes =
    Rendezvous::kMaxKeyBytes + Rendezvous::kMaxValueBytes + 64;

}  // namespace satrap::net::store_protocol
