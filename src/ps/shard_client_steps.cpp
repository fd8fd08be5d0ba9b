// The part of ShardClient for steps: weights and gradients of a rank's rows.

#include <algorithm>
#include <cstring>
#include <limits>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"
#include "src/ps/shard_client_impl.h"

namespace satrap::ps {

void ShardClientImpl::pull(std::int64_t step,
                           std::span<const Key> keys,
                           StepRows& rows,
                           std::int64_t least_version) {
  RequestPrefix prefix = new_prefix();
  prefix.least_version = least_version;
  request_rows(ShardOp::kPull, pulls_, step, prefix, keys, rows.state());
}

void ShardClientImpl::lookup(std::span<const Key> keys, StepRows& rows) {
  request_rows(ShardOp::kLookup, others_, 0, new_prefix(), keys, rows.state());
  wait(rows);
}

void ShardClientImpl::wait(StepRows& step_rows) {
  StepRows::State& rows = step_rows.state();
  SATRAP_CHECK(rows.is_under_way, "a wait for rows that have not been requested");
  rows.is_under_way = false;
  rows.read_version = std::numeric_limits<std::int64_t>::max();
  using Part = StepRows::State::Shard;
  wait_for(rows.shards, &Part::pull_answer,
           [&](Part& part, std::span<const std::byte> reply) { take_rows(rows, part, reply); });
}

void ShardClientImpl::prepare_push(StepRows& step_rows) {
  StepRows::State& rows = step_rows.state();
  rows.gradients.resize(rows.weights.size());
  rows.fill_pointers(rows.gradients, dims_, [&](StepRows::State::Shard& part) {
    part.push = net::RequestBuffer(endpoint_, static_cast<std::int64_t>(sizeof(RequestPrefix)) +
                                                  bytes_of(options_.encoding) * part.num_values);
    if (options_.encoding == FloatType::kFp32) {
      return reinterpret_cast<float*>(part.push.payload().data() + sizeof(RequestPrefix));
    }
    part.to_encode.resize(std::max(part.to_encode.size(), index(part.num_values)));
    return part.to_encode.data();
  });
}

void ShardClientImpl::push(std::int64_t step, StepRows& rows, bool skip) {
  const Deadline deadline = new_deadline();
  for (std::int64_t s = 0; s < options_.num_shards; ++s) {
    StepRows::State::Shard& part = rows.state().shards[index(s)];
    if (skip) {
      part.push = net::RequestBuffer(endpoint_, sizeof(RequestPrefix));
    } else if (options_.encoding != FloatType::kFp32) {
      encode_floats(options_.encoding, std::span(part.to_encode).first(index(part.num_values)),
                    part.push.payload().subspan(sizeof(RequestPrefix)));
    }
    write_prefix(part.push, skip ? std::uint32_t{kSkip} : 0U);
    part.push_answer = others_[index(s)]->call(op_of(ShardOp::kPush), step, part.push,
                                               std::span<std::byte>(), deadline);
    part.push = {};
  }
}

void ShardClientImpl::wait_pushed(StepRows& rows) {
  wait_for(rows.state().shards, &StepRows::State::Shard::push_answer, kNothing);
}

void ShardClientImpl::take_rows(StepRows::State& rows,
                                StepRows::State::Shard& part,
                                std::span<const std::byte> reply) const {
  if (reply.size() != part.reply.span().size()) {
    throw net::NetError(net::NetFailure::kProtocol, concat("a shard answers with ", reply.size(),
                                                           " bytes for ", part.num_keys, " keys"));
  }
  ReplyPrefix prefix;
  std::memcpy(&prefix, reply.data(), sizeof(prefix));
  rows.read_version = std::min(rows.read_version, prefix.read_version);
  if (options_.encoding == FloatType::kFp32) return;
  decode_floats(options_.encoding, reply.subspan(sizeof(prefix)),
                std::span(part.decoded).first(index(part.num_values)));
}

void ShardClientImpl::request_rows(ShardOp op,
                                   const Clients& clients,
                                   std::int64_t step,
                                   const RequestPrefix& prefix,
                                   std::span<const Key> keys,
                                   StepRows::State& rows) {
  SATRAP_CHECK(!rows.is_under_way, "rows of another step are still in use");
  const Deadline deadline = new_deadline();
  rows.divide(keys, dims_, options_.num_shards);
  rows.weights.resize(keys.size());
  rows.fill_pointers(rows.weights, dims_, [&](StepRows::State::Shard& part) -> const float* {
    part.reply.resize(sizeof(ReplyPrefix) + index(bytes_of(options_.encoding) * part.num_values));
    if (options_.encoding == FloatType::kFp32) {
      return reinterpret_cast<const float*>(part.reply.span().data() + sizeof(ReplyPrefix));
    }
    part.decoded.resize(std::max(part.decoded.size(), index(part.num_values)));
    return part.decoded.data();
  });
  rows.is_under_way = true;
  for (std::int64_t s = 0; s < options_.num_shards; ++s) {
    StepRows::State::Shard& part = rows.shards[index(s)];
    const net::RequestBuffer request = request_of_keys(prefix, rows, s, keys);
    part.pull_answer =
        clients[index(s)]->call(op_of(op), step, request, part.reply.span(), deadline);
  }
}

}  // namespace satrap::ps
