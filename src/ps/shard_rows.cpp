// The part of Shard for whole rows, for caches.

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/ps/shard.h"
#include "src/ps/shard_request.h"

namespace satrap::ps {
namespace {

/// Checks that every row has its own key in its header.
void check_headers(const DividedKeys& keys, const ShardLayout& rows_of, const std::byte* rows) {
  for (const Key key : keys.keys()) {
    Key found;
    static_assert(offsetof(RowHeader, key) == 0);
    std::memcpy(&found, rows, sizeof(found));
    if (found != key) {
      refuse("put: the row of id ", id_of(key), " of table ", static_cast<int>(table_of(key)),
             " has the header of id ", id_of(found), " of table ",
             static_cast<int>(table_of(found)));
    }
    rows += rows_of.dims[static_cast<std::size_t>(table_of(key))] * kFloatBytes;
  }
}

}  // namespace

void Shard::fetch(Call& call) {
  auto request = std::make_shared<RowRequest>();
  request->kind = RowRequest::Kind::kFetch;
  request->keys.assign(row_layout_, keys_of(*call));
  request->reply = call->reply_space(static_cast<std::int64_t>(sizeof(ReplyPrefix)) +
                                     request->keys.num_values() * kFloatBytes);
  request->call = std::move(call);
  send_to_workers(request);
}

void Shard::put(RunningJob& job, const RequestPrefix& prefix, Call& call) {
  const net::RequestTag tag = call->tag();
  if (tag.step < 1 || tag.step > kMaxStep) {
    refuse("put of step ", tag.step, ", allowed: 1 to ", kMaxStep);
  }
  if (tag.client == 0 || tag.sequence == 0) refuse("a put without a number");
  const std::span<const std::byte> body = body_of(*call);
  const std::size_t num_keys = prefix.num_keys;
  if (num_keys > body.size() / sizeof(Key)) {
    refuse("put of ", num_keys, " keys in ", body.size(), " bytes");
  }
  auto request = std::make_shared<RowRequest>();
  request->kind = RowRequest::Kind::kPut;
  request->keys.assign(row_layout_, {reinterpret_cast<const Key*>(body.data()), num_keys});
  const std::span<const std::byte> rows = body.subspan(num_keys * sizeof(Key));
  const std::int64_t expected = request->keys.num_values() * kFloatBytes;
  if (std::ssize(rows) != expected) {
    refuse("put: ", rows.size(), " bytes of rows for ", num_keys, " keys, expected ", expected);
  }
  check_headers(request->keys, row_layout_, rows.data());
  request->rows = rows.data();
  RunningJob::Rank& rank = job.rank_of(tag);
  const MutexLock lock(rank.mutex);
  std::uint64_t& last_put = rank.last_puts[tag.client];
  if (tag.sequence <= last_put) {
    // The earlier one may still be in progress: without keys, this one is answered after it.
    ++job.num_repeated;
    request->keys.assign(row_layout_, {});
  }
  last_put = std::max(last_put, tag.sequence);
  request->call = std::move(call);
  send_to_workers(request);
}

}  // namespace satrap::ps
