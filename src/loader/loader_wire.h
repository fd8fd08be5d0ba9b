#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/data/config.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/topic_position.h"
#include "satrap/net/request.h"

namespace satrap::loader {

/// Version of these messages. A rank and a loader with different ones do not understand each other.
inline constexpr std::int64_t kProtocol = 3;

/// A connection serves one pass: kOpen once, answered at once by nothing or error_bytes, then kNext
/// for each delivery.
inline constexpr net::Op kOpen = 1;
inline constexpr net::Op kNext = 2;

/// Deliveries that a rank has asked for and not taken, of each loader.
inline constexpr std::int64_t kMaxInFlight = 16;

/// In the store: how many loaders there have been, and an entry for each that serves.
inline constexpr const char* kCountKey = "loaders";
std::string entry_key(std::int64_t number);
std::string server_name(std::int64_t number);

/// The request of a rank.
struct PassRequest {
  data::DataConfig config;           // whose train.path names the files one by one
  std::int64_t first_eval_row = -1;  // of an evaluation part at the tail; -1: there is none
  std::optional<data::TopicPosition> place = {};  // where in a topic the pass begins
  std::int64_t num_ranks = 1;                     // that ask for passes like this one
  data::RowPass pass;  // without what a process cannot tell another: part, texts, stop, num_threads
};

std::string to_bytes(const PassRequest& request);
/// `bytes` are a stranger's: throws Error(kInvalidData) unless they say a pass, and kInvalidConfig
/// if they are of another protocol or have another configuration than this version's.
PassRequest read_pass_request(std::span<const std::byte> bytes);

/// The answer to kNext: a delivery, or the error that ended the reading, in its first byte.
enum class AnswerKind : std::uint8_t { kDelivery, kError };

std::vector<std::byte> error_bytes(ErrorCode code, const std::string& message);
/// Throws what error_bytes was given, as the words of `loader`.
[[noreturn]] void throw_error(std::span<const std::byte> bytes, const std::string& loader);

}  // namespace satrap::loader
