#include "satrap/ps/shard_client.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"
#include "satrap/net/reconnecting_client.h"
#include "satrap/ps/sharding.h"
#include "src/ps/shard_messages.h"
#include "src/ps/shard_wire.h"
#include "src/ps/step_rows.h"

namespace satrap::ps {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

StepRows::StepRows() : state_(std::make_unique<State>()) {}
StepRows::~StepRows() = default;
StepRows::StepRows(StepRows&&) noexcept = default;
StepRows& StepRows::operator=(StepRows&&) noexcept = default;

std::span<const float* const> StepRows::weights() const { return state_->weights; }
std::span<float* const> StepRows::gradients() const { return state_->gradients; }
std::int64_t StepRows::read_version() const { return state_->read_version; }

class ShardClient::Impl {
 public:
  using Pending = std::unique_ptr<net::ReconnectingClient::Pending>;

  Impl(const net::Endpoint& endpoint,
       const std::shared_ptr<net::Store>& store,
       const std::vector<TableSpec>& tables,
       std::uint64_t seed,
       const Options& options_in)
      : options(options_in),
        endpoint_(endpoint),
        lines_(describe_tables(tables, seed, options_in.num_shards)) {
    SATRAP_CHECK(options.num_shards >= 1, options.num_shards, " shards");
    for (const TableSpec& table : tables) dims_.push_back(table.dim);
    for (std::int64_t s = 0; s < options.num_shards; ++s) {
      const auto client = [&](const char* what) {
        return std::make_unique<net::ReconnectingClient>(
            endpoint, store, shard_name(s), concat("rank ", options.rank, " ", what),
            static_cast<std::int32_t>(options.rank), options.attempt_ms);
      };
      pulls_.push_back(client("pulls"));
      others_.push_back(client("pushes"));
    }
  }

  // ------------------------------------------------------------------------------ begin and join

  void begin(const ShardJob& job) {
    session_ = job.session;
    ask_all(ShardOp::kBegin, 0, {endpoint_, {bytes_of(to_json(BeginMessage{job, lines_}))}});
  }

  void join(std::uint64_t session) {
    session_ = session;
    ask_all(ShardOp::kJoin, 0, {endpoint_, {bytes_of(to_json(JoinMessage{session, lines_}))}});
  }

  // --------------------------------------------------------------------------------------- steps

  void pull(std::int64_t step, std::span<const Key> keys, StepRows::State& rows) {
    request_rows(ShardOp::kPull, pulls_, step, keys, rows);
  }

  void look_up(std::span<const Key> keys, StepRows::State& rows) {
    request_rows(ShardOp::kLookup, others_, 0, keys, rows);
    wait(rows);
  }

  void wait(StepRows::State& rows) {
    SATRAP_CHECK(rows.is_under_way, "a wait for rows that have not been asked for");
    rows.is_under_way = false;
    rows.read_version = std::numeric_limits<std::int64_t>::max();
    // All are waited for, whatever becomes of the others: their memory is written to until then.
    std::exception_ptr error;
    for (std::int64_t s = 0; s < options.num_shards; ++s) {
      StepRows::State::Shard& part = rows.shards[index(s)];
      if (!part.pending) continue;
      try {
        const std::span<const std::byte> reply = part.pending->wait();
        if (reply.size() != part.reply.span().size()) {
          throw net::NetError(net::NetFailure::kProtocol,
                              concat("shard ", s, " answers with ", reply.size(), " bytes for ",
                                     part.num_keys, " keys"));
        }
        ReplyPrefix prefix;
        std::memcpy(&prefix, reply.data(), sizeof(prefix));
        rows.read_version = std::min(rows.read_version, prefix.read_version);
        if (options.encoding != net::FloatEncoding::kFp32) {
          net::decode_floats(options.encoding, reply.subspan(sizeof(prefix)),
                             std::span(part.decoded).first(index(part.num_values)));
        }
      } catch (...) {
        if (!error) error = std::current_exception();
      }
      part.pending.reset();
    }
    if (error) std::rethrow_exception(error);
  }

  void prepare_push(StepRows::State& rows) {
    rows.gradients.resize(rows.weights.size());
    fill_pointers(rows, rows.gradients, [&](StepRows::State::Shard& part) {
      part.push =
          net::RequestBuffer(endpoint_, static_cast<std::int64_t>(sizeof(RequestPrefix)) +
                                            net::encoded_bytes(options.encoding, part.num_values));
      if (options.encoding == net::FloatEncoding::kFp32) {
        return reinterpret_cast<float*>(part.push.payload().data() + sizeof(RequestPrefix));
      }
      part.to_encode.resize(std::max(part.to_encode.size(), index(part.num_values)));
      return part.to_encode.data();
    });
  }

  void push(std::int64_t step, StepRows::State& rows, bool skip) {
    const Deadline deadline = new_deadline();
    std::vector<Pending> answers;
    for (std::int64_t s = 0; s < options.num_shards; ++s) {
      StepRows::State::Shard& part = rows.shards[index(s)];
      if (skip) {
        part.push = net::RequestBuffer(endpoint_, sizeof(RequestPrefix));
      } else if (options.encoding != net::FloatEncoding::kFp32) {
        net::encode_floats(options.encoding,
                           std::span(part.to_encode).first(index(part.num_values)),
                           part.push.payload().subspan(sizeof(RequestPrefix)));
      }
      write_prefix(part.push, skip ? std::uint32_t{kSkip} : 0U);
      answers.push_back(others_[index(s)]->call(op_of(ShardOp::kPush), step, part.push,
                                                std::span<std::byte>(), deadline));
    }
    wait_for(answers);
    for (StepRows::State::Shard& part : rows.shards) part.push = {};
  }

  void end_pulls(std::int64_t step) { ask_all(ShardOp::kEndPulls, step, plain_request()); }
  void wait_applied(std::int64_t step) { ask_all(ShardOp::kWaitApplied, step, plain_request()); }

  // ---------------------------------------------------------------------------- outside of steps

  void begin_snapshot(std::int64_t step) {
    ask_all(ShardOp::kBeginSnapshot, step, plain_request());
  }

  std::vector<SnapshotFile> write_snapshot(const std::string& directory) {
    const net::RequestBuffer prefix = plain_request();
    std::vector<SnapshotFile> all;
    ask_all(ShardOp::kWriteSnapshot, 0, {endpoint_, {prefix.payload(), bytes_of(directory)}},
            [&](std::span<const std::byte> answer) {
              const std::vector<SnapshotFile> files = parse_snapshot_files(answer);
              all.insert(all.end(), files.begin(), files.end());
            });
    return all;
  }

  std::vector<ShardStats> stats() {
    std::vector<ShardStats> all;
    ask_all(ShardOp::kStats, 0, plain_request(),
            [&](std::span<const std::byte> answer) { all.push_back(parse_stats(answer)); });
    return all;
  }

  // ------------------------------------------------------------------------------------- dense

  void put_dense(const DenseVectors& values, const DenseOptimizer& optimizer) {
    const auto size = std::ssize(values.parameters);
    SATRAP_CHECK(std::ssize(values.first) == size && std::ssize(values.second) == size, size,
                 " parameters, ", values.first.size(), " and ", values.second.size(), " of state");
    const DensePrefix dense{optimizer.type,     0,
                            optimizer.momentum, optimizer.weight_decay,
                            optimizer.beta1,    optimizer.beta2,
                            optimizer.eps,      optimizer.initial_accumulator,
                            values.num_updates};
    const net::RequestBuffer prefix = plain_request();
    const Deadline deadline = new_deadline();
    std::vector<Pending> answers;
    for (std::int64_t s = 0; s < options.num_shards; ++s) {
      const auto stretch = [&](const std::vector<float>& all) {
        return std::as_bytes(stretch_of(std::span(all), s));
      };
      const net::RequestBuffer request(
          endpoint_, {prefix.payload(), std::as_bytes(std::span(&dense, 1)),
                      stretch(values.parameters), stretch(values.first), stretch(values.second)});
      answers.push_back(others_[index(s)]->call(op_of(ShardOp::kPutDense), 0, request,
                                                std::span<std::byte>(), deadline));
    }
    wait_for(answers);
  }

  /// Parts of [num_parts, size] values, to `parts`; returns the least number of updates.
  double pull_dense(std::span<const std::span<float>> parts) {
    const net::RequestBuffer prefix = plain_request(parts.size() > 1 ? kWithState : 0U);
    const Deadline deadline = new_deadline();
    std::vector<Pending> answers;
    for (const auto& client : others_) {
      answers.push_back(client->call_for_any_size(op_of(ShardOp::kPullDense), 0,
                                                  net::RequestBuffer(endpoint_, {prefix.payload()}),
                                                  deadline));
    }
    double num_updates = std::numeric_limits<double>::max();
    std::int64_t shard = 0;
    wait_for(answers, [&](std::span<const std::byte> answer) {
      ReplyPrefix reply;
      const auto mine = stretch_of(parts[0], shard);
      if (answer.size() != sizeof(reply) + parts.size() * mine.size_bytes()) {
        throw net::NetError(net::NetFailure::kProtocol,
                            concat("shard ", shard, " has other dense parameters: ", answer.size(),
                                   " bytes for ", mine.size()));
      }
      std::memcpy(&reply, answer.data(), sizeof(reply));
      num_updates = std::min(num_updates, reply.num_updates);
      const std::byte* from = answer.data() + sizeof(reply);
      for (const std::span<float> part : parts) {
        if (!mine.empty()) std::memcpy(stretch_of(part, shard).data(), from, mine.size_bytes());
        from += mine.size_bytes();
      }
      ++shard;
    });
    return num_updates;
  }

  void push_dense(std::int64_t step, std::span<const float> gradient, float scale, double lr) {
    RequestPrefix prefix{};
    prefix.session = session_;
    prefix.scale = scale;
    prefix.lr = lr;
    const Deadline deadline = new_deadline();
    std::vector<Pending> answers;
    for (std::int64_t s = 0; s < options.num_shards; ++s) {
      const net::RequestBuffer request(endpoint_, {std::as_bytes(std::span(&prefix, 1)),
                                                   std::as_bytes(stretch_of(gradient, s))});
      answers.push_back(others_[index(s)]->call(op_of(ShardOp::kPushDense), step, request,
                                                std::span<std::byte>(), deadline));
    }
    wait_for(answers);
  }

  std::int64_t num_reconnects() const {
    std::int64_t sum = 0;
    for (const auto& client : pulls_) sum += client->num_reconnects();
    for (const auto& client : others_) sum += client->num_reconnects();
    return sum;
  }

  void stop() {
    for (const auto& client : pulls_) client->end();
    for (const auto& client : others_) client->end();
  }

  void close_connections() {
    for (const auto& client : pulls_) client->close_connection();
    for (const auto& client : others_) client->close_connection();
  }

  const Options options;

 private:
  using Deadline = net::Deadline;
  using Clients = std::vector<std::unique_ptr<net::ReconnectingClient>>;

  Deadline new_deadline() const { return Deadline::after_ms(options.timeout_ms); }

  void write_prefix(const net::RequestBuffer& request, std::uint32_t flags) const {
    RequestPrefix prefix{};
    prefix.session = session_;
    prefix.encoding = options.encoding;
    prefix.flags = flags;
    std::memcpy(request.payload().data(), &prefix, sizeof(prefix));
  }

  net::RequestBuffer plain_request(std::uint32_t flags = 0) const {
    net::RequestBuffer request(endpoint_, sizeof(RequestPrefix));
    write_prefix(request, flags);
    return request;
  }

  /// What shard `shard` has of dense vectors.
  template <class T>
  std::span<T> stretch_of(std::span<T> all, std::int64_t shard) const {
    const auto begin = index(shard * std::ssize(all) / options.num_shards);
    const auto end = index((shard + 1) * std::ssize(all) / options.num_shards);
    return all.subspan(begin, end - begin);
  }

  /// The same request to all shards at once; `take` gets the answers in the order of shards.
  template <class Take>
  void ask_all(ShardOp op, std::int64_t step, const net::RequestBuffer& request, Take&& take) {
    const Deadline deadline = new_deadline();
    std::vector<Pending> answers;
    for (const auto& client : others_) {
      // A buffer is of one call at a time.
      answers.push_back(client->call_for_any_size(
          op_of(op), step, net::RequestBuffer(endpoint_, {request.payload()}), deadline));
    }
    wait_for(answers, take);
  }
  void ask_all(ShardOp op, std::int64_t step, const net::RequestBuffer& request) {
    ask_all(op, step, request, [](std::span<const std::byte>) {});
  }

  static void wait_for(std::vector<Pending>& answers) {
    wait_for(answers, [](std::span<const std::byte>) {});
  }
  template <class Take>
  static void wait_for(std::vector<Pending>& answers, Take&& take) {
    std::exception_ptr error;
    for (Pending& answer : answers) {
      try {
        take(answer->wait());
      } catch (...) {
        if (!error) error = std::current_exception();
      }
      answer.reset();
    }
    if (error) std::rethrow_exception(error);
  }

  // ------------------------------------------------------------------------------- division

  /// Finds, per table, where the keys of each shard begin.
  void divide(std::span<const Key> keys, StepRows::State& rows) const {
    rows.shards.resize(index(options.num_shards));
    for (StepRows::State::Shard& part : rows.shards) part.num_keys = part.num_values = 0;
    rows.stretches.clear();
    auto next = keys.begin();
    for (std::size_t t = 0; t < dims_.size(); ++t) {
      const auto end = std::partition_point(
          next, keys.end(), [&](Key key) { return static_cast<std::size_t>(table_of(key)) <= t; });
      for (std::int64_t s = 0; s < options.num_shards; ++s) {
        rows.stretches.push_back(next - keys.begin());
        const auto stop =
            s + 1 == options.num_shards ? end : std::partition_point(next, end, [&](Key key) {
              return shard_of(key, options.num_shards) <= s;
            });
        rows.shards[index(s)].num_keys += stop - next;
        rows.shards[index(s)].num_values += (stop - next) * dims_[t];
        next = stop;
      }
      rows.stretches.push_back(next - keys.begin());
    }
    SATRAP_CHECK(next == keys.end(), "a key of table ", static_cast<int>(table_of(keys.back())),
                 ", there are ", dims_.size());
  }

  /// pointers[u] = where the values of key u are, in memory that starts at base(shard).
  template <class T, class Base>
  void fill_pointers(StepRows::State& rows, std::vector<T*>& pointers, Base&& base) const {
    const std::int64_t num_shards = options.num_shards;
    for (std::int64_t s = 0; s < num_shards; ++s) {
      T* at = base(rows.shards[index(s)]);
      for (std::size_t t = 0; t < dims_.size(); ++t) {
        const auto first = t * index(num_shards + 1) + index(s);
        const std::int64_t dim = dims_[t];
        for (std::int64_t u = rows.stretches[first]; u < rows.stretches[first + 1];
             ++u, at += dim) {
          pointers[index(u)] = at;
        }
      }
    }
  }

  void request_rows(ShardOp op,
                    const Clients& clients,
                    std::int64_t step,
                    std::span<const Key> keys,
                    StepRows::State& rows) {
    SATRAP_CHECK(!rows.is_under_way, "rows of another step are still under way");
    const Deadline deadline = new_deadline();
    divide(keys, rows);
    rows.weights.resize(keys.size());
    fill_pointers(rows, rows.weights, [&](StepRows::State::Shard& part) -> const float* {
      part.reply.resize(sizeof(ReplyPrefix) +
                        index(net::encoded_bytes(options.encoding, part.num_values)));
      if (options.encoding == net::FloatEncoding::kFp32) {
        return reinterpret_cast<const float*>(part.reply.span().data() + sizeof(ReplyPrefix));
      }
      part.decoded.resize(std::max(part.decoded.size(), index(part.num_values)));
      return part.decoded.data();
    });
    rows.is_under_way = true;
    for (std::int64_t s = 0; s < options.num_shards; ++s) {
      StepRows::State::Shard& part = rows.shards[index(s)];
      const net::RequestBuffer request(endpoint_,
                                       static_cast<std::int64_t>(sizeof(RequestPrefix)) +
                                           part.num_keys * static_cast<std::int64_t>(sizeof(Key)));
      write_prefix(request, 0);
      std::byte* to = request.payload().data() + sizeof(RequestPrefix);
      for (std::size_t t = 0; t < dims_.size(); ++t) {
        const auto first = t * index(options.num_shards + 1) + index(s);
        const auto stretch = keys.subspan(index(rows.stretches[first]),
                                          index(rows.stretches[first + 1] - rows.stretches[first]));
        if (!stretch.empty()) std::memcpy(to, stretch.data(), stretch.size_bytes());
        to += stretch.size_bytes();
      }
      part.pending = clients[index(s)]->call(op_of(op), step, request, part.reply.span(), deadline);
    }
  }

  const net::Endpoint& endpoint_;
  const std::vector<std::string> lines_;
  std::vector<std::int64_t> dims_;
  std::atomic<std::uint64_t> session_ = 0;
  Clients pulls_, others_;  // [num_shards]
};

ShardClient::ShardClient(const net::Endpoint& endpoint,
                         const std::shared_ptr<net::Store>& store,
                         const std::vector<TableSpec>& tables,
                         std::uint64_t seed,
                         Options options)
    : impl_(std::make_unique<Impl>(endpoint, store, tables, seed, options)) {}
ShardClient::~ShardClient() = default;

void ShardClient::begin(const ShardJob& job) { impl_->begin(job); }
void ShardClient::join(std::uint64_t session) { impl_->join(session); }
void ShardClient::pull(std::int64_t step, std::span<const Key> keys, StepRows& rows) {
  impl_->pull(step, keys, rows.state());
}
void ShardClient::wait(StepRows& rows) { impl_->wait(rows.state()); }
void ShardClient::prepare_push(StepRows& rows) { impl_->prepare_push(rows.state()); }
void ShardClient::push(std::int64_t step, StepRows& rows, bool skip) {
  impl_->push(step, rows.state(), skip);
}
void ShardClient::end_pulls(std::int64_t step) { impl_->end_pulls(step); }
void ShardClient::wait_applied(std::int64_t step) { impl_->wait_applied(step); }
void ShardClient::lookup(std::span<const Key> keys, StepRows& rows) {
  impl_->look_up(keys, rows.state());
}
void ShardClient::begin_snapshot(std::int64_t step) { impl_->begin_snapshot(step); }
std::vector<SnapshotFile> ShardClient::write_snapshot(const std::string& directory) {
  return impl_->write_snapshot(directory);
}
std::vector<ShardStats> ShardClient::stats() { return impl_->stats(); }
void ShardClient::put_dense(const DenseVectors& values, const DenseOptimizer& optimizer) {
  impl_->put_dense(values, optimizer);
}
void ShardClient::pull_dense(std::span<float> parameters) {
  impl_->pull_dense(std::span(&parameters, 1));
}
ShardClient::DenseVectors ShardClient::pull_dense_state(std::int64_t num_parameters) {
  DenseVectors values;
  for (auto* part : {&values.parameters, &values.first, &values.second}) {
    part->resize(index(num_parameters));
  }
  const std::span<float> parts[] = {values.parameters, values.first, values.second};
  values.num_updates = impl_->pull_dense(parts);
  return values;
}
void ShardClient::push_dense(std::int64_t step,
                             std::span<const float> gradient,
                             float scale,
                             double lr) {
  impl_->push_dense(step, gradient, scale, lr);
}
std::int64_t ShardClient::max_pulls() const { return kMaxInFlight; }
std::int64_t ShardClient::num_reconnects() const { return impl_->num_reconnects(); }
void ShardClient::stop() { impl_->stop(); }
void ShardClient::close_connections() { impl_->close_connections(); }

}  // namespace satrap::ps
