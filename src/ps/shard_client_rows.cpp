// The part of ShardClient for whole rows, for caches.

#include <cstring>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"
#include "src/ps/shard_client_impl.h"

namespace satrap::ps {
namespace {

using RowsPart = StepRows::State::Shard;

/// Calls visit(u, bytes, at) for each key u of a shard in wire order: the size of its row and the
/// offset of the row, in bytes from the first one.
template <class Visit>
void for_each_row(const StepRows::State& parts,
                  std::size_t shard,
                  std::span<const std::int64_t> row_floats,
                  Visit&& visit) {
  std::size_t at = 0;
  for (std::size_t t = 0; t < row_floats.size(); ++t) {
    const auto bytes = static_cast<std::size_t>(row_floats[t] * kFloatBytes);
    const auto [begin, end] = parts.stretch(t, shard);
    for (std::int64_t u = begin; u < end; ++u, at += bytes) {
      visit(static_cast<std::size_t>(u), bytes, at);
    }
  }
}

}  // namespace

void ShardClientImpl::fetch(std::span<const Key> keys, std::span<std::byte* const> rows) {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  const Deadline deadline = new_deadline();
  StepRows::State parts;
  parts.divide(keys, row_floats_, options_.num_shards);
  for (std::int64_t s = 0; s < options_.num_shards; ++s) {
    RowsPart& part = parts.shards[index(s)];
    if (part.num_keys == 0) continue;
    part.reply.resize(sizeof(ReplyPrefix) + index(part.num_values * kFloatBytes));
    part.pull_answer = others_[index(s)]->call(op_of(ShardOp::kFetch), 0,
                                               request_of_keys(new_prefix(), parts, s, keys),
                                               part.reply.span(), deadline);
  }
  wait_for(parts.shards, &RowsPart::pull_answer, [&](RowsPart& part, Bytes answer) {
    const auto shard = static_cast<std::size_t>(&part - parts.shards.data());
    if (answer.size() != part.reply.span().size()) {
      throw net::NetError(net::NetFailure::kProtocol,
                          concat("shard ", shard, " answers with ", answer.size(), " bytes for ",
                                 part.num_keys, " whole rows"));
    }
    const std::byte* const from = answer.data() + sizeof(ReplyPrefix);
    for_each_row(parts, shard, row_floats_, [&](std::size_t u, std::size_t bytes, std::size_t at) {
      std::memcpy(rows[u], from + at, bytes);
    });
  });
}

void ShardClientImpl::put(std::int64_t step,
                          std::span<const Key> keys,
                          std::span<const std::byte* const> rows) {
  SATRAP_CHECK(keys.size() == rows.size(), keys.size(), " keys, ", rows.size(), " rows");
  const Deadline deadline = new_deadline();
  StepRows::State parts;
  parts.divide(keys, row_floats_, options_.num_shards);
  for (std::int64_t s = 0; s < options_.num_shards; ++s) {
    RowsPart& part = parts.shards[index(s)];
    if (part.num_keys == 0) continue;
    const std::int64_t bytes_of_rows = part.num_values * kFloatBytes;
    const net::RequestBuffer request = request_of_keys(new_prefix(), parts, s, keys, bytes_of_rows);
    std::byte* const to = request.payload().last(index(bytes_of_rows)).data();
    for_each_row(parts, index(s), row_floats_,
                 [&](std::size_t u, std::size_t bytes, std::size_t at) {
                   std::memcpy(to + at, rows[u], bytes);
                 });
    part.push_answer = others_[index(s)]->call(op_of(ShardOp::kPut), step, request,
                                               std::span<std::byte>(), deadline);
  }
  wait_for(parts.shards, &RowsPart::push_answer, kNothing);
}

}  // namespace satrap::ps
