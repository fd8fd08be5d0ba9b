#include "satrap/ps/shard_client.h"

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

ShardClient::Impl::Impl(const net::Endpoint& endpoint,
                        const std::shared_ptr<net::Store>& store,
                        const std::vector<table::TableSpec>& tables,
                        std::uint64_t seed,
                        const Options& options_in)
    : options(options_in),
      endpoint_(endpoint),
      lines_(describe_tables(tables, seed, options_in.num_shards)) {
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

RequestPrefix ShardClient::Impl::new_prefix(std::uint32_t flags) const {
  RequestPrefix prefix{};
  prefix.session = session_;
  prefix.encoding = options.encoding;
  prefix.flags = flags;
  return prefix;
}

void ShardClient::Impl::write_prefix(const net::RequestBuffer& request, std::uint32_t flags) const {
  const RequestPrefix prefix = new_prefix(flags);
  std::memcpy(request.payload().data(), &prefix, sizeof(prefix));
}

net::RequestBuffer ShardClient::Impl::plain_request(std::uint32_t flags) const {
  net::RequestBuffer request(endpoint_, sizeof(RequestPrefix));
  write_prefix(request, flags);
  return request;
}

net::RequestBuffer ShardClient::Impl::request_of_keys(RequestPrefix prefix,
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

void ShardClient::Impl::begin(const ShardJob& job) {
  session_ = job.session;
  ask_all(ShardOp::kBegin, 0, {endpoint_, {bytes_of(to_json(BeginMessage{job, lines_}))}});
}

void ShardClient::Impl::join(std::uint64_t session) {
  session_ = session;
  ask_all(ShardOp::kJoin, 0, {endpoint_, {bytes_of(to_json(JoinMessage{session, lines_}))}});
}

// ------------------------------------------------------------------------ progress and snapshots

void ShardClient::Impl::end_pulls(std::int64_t step) {
  ask_all(ShardOp::kEndPulls, step, plain_request());
}

void ShardClient::Impl::wait_applied(std::int64_t step) {
  ask_all(ShardOp::kWaitApplied, step, plain_request());
}

void ShardClient::Impl::begin_snapshot(std::int64_t step) {
  ask_all(ShardOp::kBeginSnapshot, step, plain_request());
}

std::vector<SnapshotFile> ShardClient::Impl::write_snapshot(const std::string& directory) {
  const net::RequestBuffer prefix = plain_request();
  std::vector<SnapshotFile> all;
  ask_all(ShardOp::kWriteSnapshot, 0, {endpoint_, {prefix.payload(), bytes_of(directory)}},
          [&](Bytes answer) {
            const std::vector<SnapshotFile> files = parse_snapshot_files(answer);
            all.insert(all.end(), files.begin(), files.end());
          });
  return all;
}

std::vector<ShardStats> ShardClient::Impl::stats() {
  std::vector<ShardStats> all;
  ask_all(ShardOp::kStats, 0, plain_request(),
          [&](Bytes answer) { all.push_back(parse_stats(answer)); });
  return all;
}

std::int64_t ShardClient::Impl::num_reconnects() const {
  std::int64_t sum = 0;
  for_each_client([&](const auto& client) { sum += client.num_reconnects(); });
  return sum;
}

void ShardClient::Impl::stop() {
  for_each_client([](auto& client) { client.end(); });
}

void ShardClient::Impl::close_connections() {
  for_each_client([](auto& client) { client.close_connection(); });
}

// ------------------------------------------------------------------------------------ ShardClient

ShardClient::ShardClient(const net::Endpoint& endpoint,
                         const std::shared_ptr<net::Store>& store,
                         const std::vector<table::TableSpec>& tables,
                         std::uint64_t seed,
                         Options options)
    : impl_(std::make_unique<Impl>(endpoint, store, tables, seed, options)) {}
ShardClient::~ShardClient() = default;

void ShardClient::begin(const ShardJob& job) { impl_->begin(job); }
void ShardClient::join(std::uint64_t session) { impl_->join(session); }
void ShardClient::pull(std::int64_t step,
                       std::span<const Key> keys,
                       StepRows& rows,
                       std::int64_t least_version) {
  impl_->pull(step, keys, least_version, rows.state());
}
void ShardClient::pull_changed(std::int64_t step,
                               std::span<const Key> keys,
                               std::span<const CopyAge> ages,
                               StepRows& rows,
                               std::int64_t least_version) {
  impl_->pull_changed(step, keys, ages, least_version, rows.state());
}
void ShardClient::wait(StepRows& rows) { impl_->bytes_pulled += impl_->wait(rows.state()); }
void ShardClient::prepare_push(StepRows& rows) { impl_->prepare_push(rows.state()); }
void ShardClient::push(std::int64_t step, StepRows& rows, bool skip) {
  impl_->push(step, rows.state(), skip);
}
void ShardClient::wait_pushed(StepRows& rows) { impl_->wait_pushed(rows.state()); }
void ShardClient::end_pulls(std::int64_t step) { impl_->end_pulls(step); }
void ShardClient::wait_applied(std::int64_t step) { impl_->wait_applied(step); }
void ShardClient::lookup(std::span<const Key> keys, StepRows& rows) {
  impl_->look_up(keys, rows.state());
}
void ShardClient::fetch(std::span<const Key> keys, std::span<std::byte* const> rows) {
  impl_->fetch(keys, rows);
}
void ShardClient::put(std::int64_t step,
                      std::span<const Key> keys,
                      std::span<const std::byte* const> rows) {
  impl_->put(step, keys, rows);
}
void ShardClient::begin_snapshot(std::int64_t step) { impl_->begin_snapshot(step); }
std::vector<SnapshotFile> ShardClient::write_snapshot(const std::string& directory) {
  return impl_->write_snapshot(directory);
}
std::vector<ShardStats> ShardClient::stats() { return impl_->stats(); }
void ShardClient::put_dense(const DenseVectors& values, const DenseOptimizer& optimizer) {
  impl_->put_dense(values, optimizer);
}
ShardClient::DenseVectors ShardClient::pull_dense_state(std::int64_t num_parameters) {
  DenseVectors values;
  for (auto* part : {&values.parameters, &values.first, &values.second}) {
    part->resize(static_cast<std::size_t>(num_parameters));
  }
  const std::span<float> parts[] = {values.parameters, values.first, values.second};
  values.num_updates = impl_->pull_dense_state(parts);
  return values;
}
void ShardClient::exchange_dense(std::int64_t step,
                                 std::span<const float> gradient,
                                 float scale,
                                 double lr,
                                 DenseExchange& exchange) {
  impl_->exchange_dense(step, gradient, scale, lr, exchange.state());
}
void ShardClient::wait_dense(DenseExchange& exchange, std::span<float> parameters) {
  impl_->wait_dense(exchange.state(), parameters);
}
std::int64_t ShardClient::max_pulls() const { return kMaxPulls; }
std::int64_t ShardClient::bytes_pulled() const { return impl_->bytes_pulled; }
std::int64_t ShardClient::num_reconnects() const { return impl_->num_reconnects(); }
void ShardClient::stop() { impl_->stop(); }
void ShardClient::close_connections() { impl_->close_connections(); }

}  // namespace satrap::ps
