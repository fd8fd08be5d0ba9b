// The part of ShardClient for steps: weights and gradients of a rank's rows.

#include <algorithm>
#include <cstring>
#include <limits>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"
#include "src/ps/pack_answer.h"
#include "src/ps/shard_client_impl.h"

namespace satrap::ps {

void ShardClient::Impl::pull(std::int64_t step,
                             std::span<const Key> keys,
                             std::int64_t least_version,
                             StepRows::State& rows) {
  RequestPrefix prefix = new_prefix();
  prefix.least_version = least_version;
  rows.has_answers = false;
  request_rows(ShardOp::kPull, pulls_, step, prefix, keys, {}, rows);
}

void ShardClient::Impl::pull_changed(std::int64_t step,
                                     std::span<const Key> keys,
                                     std::span<const CopyAge> ages,
                                     std::int64_t least_version,
                                     StepRows::State& rows) {
  SATRAP_CHECK(ages.size() == keys.size(), ages.size(), " ages of ", keys.size(), " copies");
  RequestPrefix prefix = new_prefix();
  prefix.least_version = least_version;
  rows.has_answers = true;
  request_rows(ShardOp::kPull, pulls_, step, prefix, keys, ages, rows);
}

void ShardClient::Impl::look_up(std::span<const Key> keys, StepRows::State& rows) {
  rows.has_answers = false;
  request_rows(ShardOp::kLookup, others_, 0, new_prefix(), keys, {}, rows);
  wait(rows);
}

std::int64_t ShardClient::Impl::wait(StepRows::State& rows) {
  SATRAP_CHECK(rows.is_under_way, "a wait for rows that have not been requested");
  rows.is_under_way = false;
  rows.read_version = std::numeric_limits<std::int64_t>::max();
  using Part = StepRows::State::Shard;
  std::int64_t bytes = 0;
  wait_for(rows.shards, &Part::pull_answer, [&](Part& part, std::span<const std::byte> reply) {
    bytes += std::ssize(reply);
    rows.has_answers ? take_changed(rows, part, reply) : take_rows(rows, part, reply);
  });
  return bytes;
}

void ShardClient::Impl::prepare_push(StepRows::State& rows) {
  rows.gradients.resize(rows.weights.size());
  rows.fill_pointers(rows.gradients, dims_, [&](StepRows::State::Shard& part) {
    part.push = net::RequestBuffer(endpoint_, static_cast<std::int64_t>(sizeof(RequestPrefix)) +
                                                  bytes_of(options.encoding) * part.num_values);
    if (options.encoding == FloatType::kFp32) {
      return reinterpret_cast<float*>(part.push.payload().data() + sizeof(RequestPrefix));
    }
    part.to_encode.resize(std::max(part.to_encode.size(), index(part.num_values)));
    return part.to_encode.data();
  });
}

void ShardClient::Impl::push(std::int64_t step, StepRows::State& rows, bool skip) {
  const Deadline deadline = new_deadline();
  for (std::int64_t s = 0; s < options.num_shards; ++s) {
    StepRows::State::Shard& part = rows.shards[index(s)];
    if (skip) {
      part.push = net::RequestBuffer(endpoint_, sizeof(RequestPrefix));
    } else if (options.encoding != FloatType::kFp32) {
      encode_floats(options.encoding, std::span(part.to_encode).first(index(part.num_values)),
                    part.push.payload().subspan(sizeof(RequestPrefix)));
    }
    write_prefix(part.push, skip ? std::uint32_t{kSkip} : 0U);
    part.push_answer = others_[index(s)]->call(op_of(ShardOp::kPush), step, part.push,
                                               std::span<std::byte>(), deadline);
    part.push = {};
  }
}

void ShardClient::Impl::wait_pushed(StepRows::State& rows) {
  wait_for(rows.shards, &StepRows::State::Shard::push_answer, kNothing);
}

void ShardClient::Impl::take_rows(StepRows::State& rows,
                                  StepRows::State::Shard& part,
                                  std::span<const std::byte> reply) const {
  if (reply.size() != part.reply.span().size()) {
    throw net::NetError(net::NetFailure::kProtocol, concat("a shard answers with ", reply.size(),
                                                           " bytes for ", part.num_keys, " keys"));
  }
  ReplyPrefix prefix;
  std::memcpy(&prefix, reply.data(), sizeof(prefix));
  rows.read_version = std::min(rows.read_version, prefix.read_version);
  if (options.encoding == FloatType::kFp32) return;
  decode_floats(options.encoding, reply.subspan(sizeof(prefix)),
                std::span(part.decoded).first(index(part.num_values)));
}

void ShardClient::Impl::take_changed(StepRows::State& rows,
                                     StepRows::State::Shard& part,
                                     std::span<const std::byte> reply) const {
  const auto check = [&](bool is_right) {
    if (is_right) return;
    throw net::NetError(net::NetFailure::kProtocol,
                        concat("a shard answers with ", reply.size(), " bytes for ", part.num_keys,
                               " keys with copies"));
  };
  const std::size_t weights_begin = sizeof(ReplyPrefix) + index(answers_bytes(part.num_keys));
  check(reply.size() >= weights_begin);
  ReplyPrefix prefix;
  std::memcpy(&prefix, reply.data(), sizeof(prefix));
  rows.read_version = std::min(rows.read_version, prefix.read_version);
  part.answers.resize(index(part.num_keys));
  unpack_answers(reply.subspan(sizeof(prefix)), part.answers);
  const bool is_encoded = options.encoding != FloatType::kFp32;
  const auto* weights =
      is_encoded ? part.decoded.data()
                 : reinterpret_cast<const float*>(part.reply.span().data() + weights_begin);
  const float* const begin = weights;
  const auto shard = static_cast<std::size_t>(&part - rows.shards.data());
  auto answer = part.answers.begin();
  for (std::size_t t = 0; t < dims_.size(); ++t) {
    const auto [first, last] = rows.stretch(t, shard);
    for (std::int64_t u = first; u < last; ++u, ++answer) {
      const bool is_sent = *answer == RowAnswer::kSent;
      rows.weights[index(u)] = is_sent ? weights : nullptr;
      rows.versions[index(u)] = *answer == RowAnswer::kKept ? StepRows::kKept : prefix.read_version;
      if (is_sent) weights += dims_[t];
    }
  }
  const std::int64_t num_values = weights - begin;
  check(std::ssize(reply) - static_cast<std::int64_t>(weights_begin) ==
        num_values * bytes_of(options.encoding));
  if (!is_encoded) return;
  decode_floats(options.encoding, reply.subspan(weights_begin),
                std::span(part.decoded).first(index(num_values)));
}

void ShardClient::Impl::request_rows(ShardOp op,
                                     const Clients& clients,
                                     std::int64_t step,
                                     const RequestPrefix& prefix,
                                     std::span<const Key> keys,
                                     std::span<const CopyAge> ages,
                                     StepRows::State& rows) {
  SATRAP_CHECK(!rows.is_under_way, "rows of another step are still in use");
  const Deadline deadline = new_deadline();
  rows.divide(keys, dims_, options.num_shards);
  rows.weights.resize(keys.size());
  rows.versions.resize(rows.has_answers ? keys.size() : 0);
  rows.fill_pointers(rows.weights, dims_, [&](StepRows::State::Shard& part) -> const float* {
    const std::int64_t more = rows.has_answers ? answers_bytes(part.num_keys) : 0;
    part.reply.resize(sizeof(ReplyPrefix) +
                      index(more + bytes_of(options.encoding) * part.num_values));
    if (options.encoding == FloatType::kFp32) {
      return reinterpret_cast<const float*>(part.reply.span().data() + sizeof(ReplyPrefix));
    }
    part.decoded.resize(std::max(part.decoded.size(), index(part.num_values)));
    return part.decoded.data();
  });
  rows.is_under_way = true;
  for (std::int64_t s = 0; s < options.num_shards; ++s) {
    StepRows::State::Shard& part = rows.shards[index(s)];
    const auto age_bytes = static_cast<std::int64_t>(ages.empty() ? 0 : sizeof(CopyAge));
    const net::RequestBuffer request =
        request_of_keys(prefix, rows, s, keys, part.num_keys * age_bytes);
    if (!ages.empty()) {
      rows.copy_keys_of(s, ages, request.payload().last(index(part.num_keys * age_bytes)));
    }
    part.pull_answer =
        clients[index(s)]->call(op_of(op), step, request, part.reply.span(), deadline);
  }
}

}  // namespace satrap::ps
