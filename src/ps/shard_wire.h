#pragma once

#include <cstdint>
#include <string>

#include "satrap/core/float_codec.h"
#include "satrap/kernels/dense_update.h"
#include "satrap/net/request.h"

namespace satrap::ps {

inline constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));

// The messages between a ShardClient and a ShardServer. Rank and step are in the request's tag.
//
//   begin, join      JSON, see shard_messages.h
//   pull, lookup     RequestPrefix, keys: [num_keys] ascending, all of this shard
//                    answer: ReplyPrefix, weights: table by table [num_keys of it, dim], encoded
//   push             RequestPrefix, gradients in the layout of the pull's answer; or kSkip, nothing
//   fetch            RequestPrefix, keys as of a pull
//                    answer: ReplyPrefix, whole rows: table by table [num_keys of it, row bytes]
//   put              RequestPrefix, keys as of a pull: [RequestPrefix::num_keys], and whole rows in
//                    the layout of the answer to a fetch
//   end_pulls, wait_applied, begin_snapshot, stats    RequestPrefix
//   write_snapshot   RequestPrefix, path of the folder
//   put_dense        RequestPrefix, DensePrefix, parameters, first and second state: [size] each
//   pull_dense       RequestPrefix; answer: ReplyPrefix, parameters; with kWithState also the state
//   push_dense       RequestPrefix, gradient: [size]
//   answers of stats and write_snapshot are JSON, all others are empty
//
// Whole rows are Table::row_bytes() each: RowHeader, weights, optimizer state; as stored.
enum class ShardOp : net::Op {
  kBegin = 1,
  kJoin,
  kPull,
  kPush,
  kEndPulls,
  kWaitApplied,
  kLookup,
  kBeginSnapshot,
  kWriteSnapshot,
  kStats,
  kPutDense,
  kPullDense,
  kPushDense,
  kFetch,
  kPut,
};

inline constexpr net::Op op_of(ShardOp op) { return static_cast<net::Op>(op); }

enum RequestFlags : std::uint32_t { kSkip = 1, kWithState = 2 };

/// As long as the alignment of payloads, so that the bytes after it are aligned too.
struct RequestPrefix {
  std::uint64_t session;
  FloatType encoding;
  std::uint8_t reserved[3];
  std::uint32_t flags;
  double lr;                   // of push_dense
  float scale;                 // of push_dense, on the gradient
  std::uint32_t num_keys;      // of requests with keys; read by put
  std::int64_t least_version;  // of pull: v of the oldest E_v that it wants; 0: any
  std::uint8_t padding[24];
};
static_assert(sizeof(RequestPrefix) == 64);

struct ReplyPrefix {
  std::int64_t read_version;
  double num_updates;  // of pull_dense
  std::uint8_t padding[48];
};
static_assert(sizeof(ReplyPrefix) == 64);

struct DensePrefix {
  DenseOptimizerType type;
  std::uint32_t reserved;
  double momentum, weight_decay, beta1, beta2, eps, initial_accumulator;
  double num_updates;
};
static_assert(sizeof(DensePrefix) == 64);

/// Requests a client may have unanswered on one connection.
inline constexpr std::int64_t kMaxInFlight = 16;

/// Pulls among them: their answers are as large as all memory for rows in flight.
inline constexpr std::int64_t kMaxPulls = 8;

inline std::string shard_name(std::int64_t shard) { return "shard/" + std::to_string(shard); }

}  // namespace satrap::ps
