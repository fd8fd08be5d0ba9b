#pragma once

#include <cstdint>
#include <string>

#include "satrap/net/request.h"
#include "src/net/buffer_pool.h"

namespace satrap::net {

// The messages between a client (rank 0 of the two) and a server (rank 1).
//
// The client connects twice to the server's port, each time with a handshake (handshake.h) under
// kMagic. The first socket becomes the control socket, which belongs to Monitor from then on:
//   request  Purpose::kControl, server's name, client's name
//   answer   limits, the key of the connection
// The second one goes to Gloo:
//   request  Purpose::kLink, server's name, the key
//   answer   nothing
//
// A request is one message on kRequestSlot: RequestHeader, padded to kRequestHeaderBytes, and the
// payload. If they exceed the server's slot_bytes, the header goes alone and the payload follows on
// kBulkSlot + slot, for which the server posts a receive when it has seen the header.
// A reply is one message on kReplySlot + slot: ReplyHeader, padded to kReplyHeaderBytes, and up to
// RequestHeader::inline_bytes of payload, or the error's text. A longer payload, and *every*
// payload of a call for which the client has posted a receive (reply_capacity > kInlineReplyBytes;
// empty on errors), is a separate message on kReplyPayloadSlot + slot, sent after the header.

inline constexpr std::uint64_t kMagic = 0x32304E5041525453;  // changes with the format

inline constexpr int kClientRank = 0;
inline constexpr int kServerRank = 1;

inline constexpr std::uint64_t kRequestSlot = 0;
inline constexpr std::uint64_t kReplySlot = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kReplyPayloadSlot = std::uint64_t{2} << 32;
inline constexpr std::uint64_t kBulkSlot = std::uint64_t{3} << 32;

inline constexpr std::int64_t kRequestHeaderBytes = 128;
inline constexpr std::int64_t kReplyHeaderBytes = 64;
inline constexpr std::int64_t kInlineReplyBytes = 4096;  // at least; also the longest error text
inline constexpr std::int64_t kMaxReplyBytes = std::int64_t{4} << 30;
inline constexpr std::int64_t kMaxControlBytes = 1024;

inline constexpr std::int64_t kAnySize = -1;  // as reply_capacity

enum class Purpose : std::uint8_t { kControl, kLink };

enum RequestFlags : std::uint32_t { kOrdered = 1, kHasChecksum = 2 };

struct RequestHeader {
  std::uint64_t magic;
  std::uint64_t request_id;  // of the connection, from 1
  std::int64_t payload_bytes;
  std::int64_t reply_capacity;
  std::int64_t inline_bytes;  // of payload that fit into the message with the reply's header
  std::uint64_t checksum;     // XXH3 of the payload, if kHasChecksum
  std::uint32_t op;
  std::uint32_t slot;  // below max_in_flight, of one unanswered request at a time
  std::uint32_t flags;
  std::uint32_t reserved;
  RequestTag tag;
};
static_assert(sizeof(RequestHeader) <= kRequestHeaderBytes);

enum class ReplyStatus : std::uint32_t { kOk, kFailed };

struct ReplyHeader {
  std::uint64_t magic;
  std::uint64_t request_id;
  std::int64_t payload_bytes;  // of kFailed: of the text
  std::uint64_t checksum;
  ReplyStatus status;
  std::uint32_t flags;
};
static_assert(sizeof(ReplyHeader) <= kReplyHeaderBytes);

struct RequestBuffer::Memory {
  std::shared_ptr<Endpoint::Impl> endpoint;
  PooledMemory memory;  // kRequestHeaderBytes, then the payload
  std::int64_t payload_bytes;

  Memory(std::shared_ptr<Endpoint::Impl> owner, std::int64_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

/// The key of a server's address in the store.
inline std::string address_key(const std::string& server) { return "net/" + server; }

}  // namespace satrap::net
