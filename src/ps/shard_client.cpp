#include "satrap/ps/shard_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/table/table.h"
#include "src/ps/shard_client_impl.h"
#include "src/ps/shard_messages.h"

namespace satrap::ps {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

ShardClientImpl::ShardClientImpl(const net::Endpoint& endpoint,
                                 const std::shared_ptr<net::Rendezvous>& store,
                                 const std::vector<table::TableSpec>& tables,
                                 std::uint64_t seed,
                                 const Options& options)
    : options_(options),
      endpoint_(endpoint),
      lines_(describe_tables(tables, seed, options.num_shards)) {
  SATRAP_CHECK(options.num_shards >= 1, options.num_shards, " shards");
  for (const table::TableSpec& table : tables) {
    dims_.push_back(table.dim);
    row_floats_.push_back(table.layout().row_bytes / static_cast<std::int64_t>(sizeof(float)));
  }
  for (std::int64_t s = 0; s < options.num_shards; ++s) {
    const auto client = [&](const char* what) {
      return std::make_unique<net::ReconnectingClient>(
          endpoint, store, shard_name(s), concat("rank ", options.rank, " ", what),
          static_cast<std::int32_t>(options.rank), options.attempt_ms);
    };
    pulls_.push_back(client("pulls"));
    others_.push_back(client("pushes"));
    dense_.push_back(client("dense"));
  }
}

RequestPrefix ShardClientImpl::new_prefix(std::uint32_t flags) const {
  RequestPrefix prefix{};
  prefix.session = session_;
  prefix.encoding = options_.encoding;
  prefix.flags = flags;
  return prefix;
}

void ShardClientImpl::write_prefix(const net::RequestBuffer& request, std::uint32_t flags) const {
  const RequestPrefix prefix = new_prefix(flags);
  std::memcpy(request.payload().data(), &prefix, sizeof(prefix));
}

net::RequestBuffer ShardClientImpl::plain_request(std::uint32_t flags) const {
  net::RequestBuffer request(endpoint_, sizeof(RequestPrefix));
  write_prefix(request, flags);
  return request;
}

net::RequestBuffer ShardClientImpl::request_of_keys(RequestPrefix prefix,
                                                    const StepRows::State& rows,
                                                    std::int64_t shard,
                                                    std::span<const Key> keys,
                                                    std::int64_t more_bytes) const {
  const std::int64_t num_keys = rows.shards[index(shard)].num_keys;
  net::RequestBuffer request(endpoint_, static_cast<std::int64_t>(sizeof(RequestPrefix)) +
                                            num_keys * static_cast<std::int64_t>(sizeof(Key)) +
                                            more_bytes);
  prefix.num_keys = static_cast<std::uint32_t>(num_keys);
  std::memcpy(request.payload().data(), &prefix, sizeof(prefix));
  rows.copy_keys_of(shard, keys, request.payload().subspan(sizeof(prefix)));
  return request;
}

// --------------------------------------------------------------------------------- begin and join

void ShardClientImpl::begin(const ShardJob& job) {
  session_ = job.session;
  ask_all(ShardOp::kBegin, 0, {endpoint_, {bytes_of(to_json(BeginMessage{job, lines_}))}});
}

void ShardClientImpl::join(std::uint64_t session) {
  session_ = session;
  ask_all(ShardOp::kJoin, 0, {endpoint_, {bytes_of(to_json(JoinMessage{session, lines_}))}});
}

// ------------------------------------------------------------------------ progress and snapshots

void ShardClientImpl::end_pulls(std::int64_t step) {
  ask_all(ShardOp::kEndPulls, step, plain_request());
}

void ShardClientImpl::wait_applied(std::int64_t step) {
  ask_all(ShardOp::kWaitApplied, step, plain_request());
}

void ShardClientImpl::begin_snapshot(std::int64_t step) {
  ask_all(ShardOp::kBeginSnapshot, step, plain_request());
}

std::vector<SnapshotFile> ShardClientImpl::write_snapshot(const std::string& directory) {
  const net::RequestBuffer prefix = plain_request();
  std::vector<SnapshotFile> all;
  ask_all(ShardOp::kWriteSnapshot, 0, {endpoint_, {prefix.payload(), bytes_of(directory)}},
          [&](Bytes answer) {
            const std::vector<SnapshotFile> files = parse_snapshot_files(answer);
            all.insert(all.end(), files.begin(), files.end());
          });
  return all;
}

std::vector<ShardStats> ShardClientImpl::stats() {
  std::vector<ShardStats> all;
  ask_all(ShardOp::kStats, 0, plain_request(),
          [&](Bytes answer) { all.push_back(parse_stats(answer)); });
  return all;
}

bool ShardClientImpl::is_applied(std::int64_t step) {
  return std::ranges::all_of(stats(),
                             [&](const ShardStats& shard) { return shard.applied_step >= step; });
}

std::int64_t ShardClientImpl::num_reconnects() const {
  std::int64_t sum = 0;
  for_each_client([&](const auto& client) { sum += client.num_reconnects(); });
  return sum;
}

void ShardClientImpl::stop() {
  for_each_client([](auto& client) { client.end(); });
}

void ShardClientImpl::close_connections() {
  for_each_client([](auto& client) { client.close_connection(); });
}

std::unique_ptr<ShardClient> ShardClient::create(const net::Endpoint& endpoint,
                                                 const std::shared_ptr<net::Rendezvous>& store,
                                                 const std::vector<table::TableSpec>& tables,
                                                 std::uint64_t seed,
                                                 const Options& options) {
  return std::make_unique<ShardClientImpl>(endpoint, store, tables, seed, options);
}

}  // namespace satrap::ps
