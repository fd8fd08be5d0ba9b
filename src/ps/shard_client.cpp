#include "satrap/ps/shard_client.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"
#include "satrap/net/reconnecting_client.h"
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
      dense_.push_back(client("dense"));
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
    using Part = StepRows::State::Shard;
    wait_for(rows.shards, &Part::pull_answer,
             [&](Part& part, std::span<const std::byte> reply) { take_rows(rows, part, reply); });
  }

  void prepare_push(StepRows::State& rows) {
    rows.gradients.resize(rows.weights.size());
    rows.fill_pointers(rows.gradients, dims_, [&](StepRows::State::Shard& part) {
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
      part.push_answer = others_[index(s)]->call(op_of(ShardOp::kPush), step, part.push,
                                                 std::span<std::byte>(), deadline);
      part.push = {};
    }
  }

  void wait_pushed(StepRows::State& rows) {
    wait_for(rows.shards, &StepRows::State::Shard::push_answer, kNothing);
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
    send_to_each(ShardOp::kPutDense, 0, [&](std::int64_t s) {
      const auto stretch = [&](const std::vector<float>& all) {
        return std::as_bytes(stretch_of(std::span(all), s));
      };
      return net::RequestBuffer(
          endpoint_, {prefix.payload(), std::as_bytes(std::span(&dense, 1)),
                      stretch(values.parameters), stretch(values.first), stretch(values.second)});
    });
  }

  void exchange_dense(std::int64_t step,
                      std::span<const float> gradient,
                      float scale,
                      double lr,
                      DenseExchange::State& exchange) {
    RequestPrefix prefix{};
    prefix.session = session_;
    prefix.scale = scale;
    prefix.lr = lr;
    const Deadline deadline = new_deadline();
    exchange.shards.resize(index(options.num_shards));
    for (std::int64_t s = 0; s < options.num_shards; ++s) {
      const net::RequestBuffer push(endpoint_, {std::as_bytes(std::span(&prefix, 1)),
                                                std::as_bytes(stretch_of(gradient, s))});
      exchange.shards[index(s)].push_answer = dense_[index(s)]->call(
          op_of(ShardOp::kPushDense), step, push, std::span<std::byte>(), deadline);
    }
    ask_for_dense(exchange, 1, std::ssize(gradient), deadline);
  }

  void wait_dense(DenseExchange::State& exchange, std::span<float> parameters) {
    wait_for(exchange.shards, &DenseExchange::State::Shard::push_answer, kNothing);
    take_dense(exchange, std::span(&parameters, 1));
  }

  double pull_dense_state(std::span<const std::span<float>> parts) {
    DenseExchange::State exchange;
    exchange.shards.resize(index(options.num_shards));
    ask_for_dense(exchange, std::ssize(parts), std::ssize(parts[0]), new_deadline());
    return take_dense(exchange, parts);
  }

  std::int64_t num_reconnects() const {
    std::int64_t sum = 0;
    for_each_client([&](const auto& client) { sum += client.num_reconnects(); });
    return sum;
  }

  void stop() {
    for_each_client([](auto& client) { client.end(); });
  }

  void close_connections() {
    for_each_client([](auto& client) { client.close_connection(); });
  }

  const Options options;

  static_assert(2 * kMaxDenseExchanges <= kMaxInFlight);

 private:
  using Deadline = net::Deadline;
  using Bytes = std::span<const std::byte>;
  static constexpr auto kNothing = [](auto&, Bytes) {};
  using Clients = std::vector<std::unique_ptr<net::ReconnectingClient>>;

  Deadline new_deadline() const { return Deadline::after_ms(options.timeout_ms); }

  template <class Action>
  void for_each_client(Action&& action) const {
    for (const Clients* clients : {&pulls_, &others_, &dense_}) {
      for (const auto& client : *clients) action(*client);
    }
  }

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

  /// What shard `shard` has of dense vectors: [begin, end).
  std::pair<std::int64_t, std::int64_t> stretch_of(std::int64_t size, std::int64_t shard) const {
    return {shard * size / options.num_shards, (shard + 1) * size / options.num_shards};
  }
  template <class T>
  std::span<T> stretch_of(std::span<T> all, std::int64_t shard) const {
    const auto [begin, end] = stretch_of(std::ssize(all), shard);
    return all.subspan(index(begin), index(end - begin));
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
    wait_for(answers, std::identity{}, [&](Pending&, Bytes answer) { take(answer); });
  }
  void ask_all(ShardOp op, std::int64_t step, const net::RequestBuffer& request) {
    ask_all(op, step, request, [](std::span<const std::byte>) {});
  }

  /// A request of its own, request_of(s), to each shard at once; answers have no content.
  template <class RequestOf>
  void send_to_each(ShardOp op, std::int64_t step, RequestOf&& request_of) {
    const Deadline deadline = new_deadline();
    std::vector<Pending> answers;
    for (std::int64_t s = 0; s < options.num_shards; ++s) {
      answers.push_back(others_[index(s)]->call(op_of(op), step, request_of(s),
                                                std::span<std::byte>(), deadline));
    }
    wait_for(answers, std::identity{}, kNothing);
  }

  void take_rows(StepRows::State& rows,
                 StepRows::State::Shard& part,
                 std::span<const std::byte> reply) const {
    if (reply.size() != part.reply.span().size()) {
      throw net::NetError(
          net::NetFailure::kProtocol,
          concat("a shard answers with ", reply.size(), " bytes for ", part.num_keys, " keys"));
    }
    ReplyPrefix prefix;
    std::memcpy(&prefix, reply.data(), sizeof(prefix));
    rows.read_version = std::min(rows.read_version, prefix.read_version);
    if (options.encoding == net::FloatEncoding::kFp32) return;
    net::decode_floats(options.encoding, reply.subspan(sizeof(prefix)),
                       std::span(part.decoded).first(index(part.num_values)));
  }

  /// Waits for the answer_of(each) in turn, for all of them whatever becomes of the others, because
  /// their memory is written to until then; throws the first error. `take` gets the answers, with
  /// what they belong to.
  template <class Each, class AnswerOf, class Take>
  static void wait_for(std::vector<Each>& all, AnswerOf answer_of, Take&& take) {
    std::exception_ptr error;
    for (Each& each : all) {
      Pending& answer = std::invoke(answer_of, each);
      if (!answer) continue;
      try {
        take(each, answer->wait());
      } catch (...) {
        if (!error) error = std::current_exception();
      }
      answer.reset();
    }
    if (error) std::rethrow_exception(error);
  }

  /// Parameters, and with three parts the optimizer's state.
  void ask_for_dense(DenseExchange::State& exchange,
                     std::int64_t num_parts,
                     std::int64_t num_parameters,
                     Deadline deadline) {
    const std::uint32_t flags = num_parts > 1 ? kWithState : 0U;
    for (std::int64_t s = 0; s < options.num_shards; ++s) {
      DenseExchange::State::Shard& part = exchange.shards[index(s)];
      const auto [begin, end] = stretch_of(num_parameters, s);
      part.reply.resize(sizeof(ReplyPrefix) + index(num_parts * (end - begin)) * sizeof(float));
      part.pull_answer = dense_[index(s)]->call(op_of(ShardOp::kPullDense), 0, plain_request(flags),
                                                part.reply.span(), deadline);
    }
  }

  /// Parts of [num_parts, size] values, to `parts`; returns the least number of updates.
  double take_dense(DenseExchange::State& exchange, std::span<const std::span<float>> parts) const {
    using Part = DenseExchange::State::Shard;
    double num_updates = std::numeric_limits<double>::max();
    wait_for(exchange.shards, &Part::pull_answer, [&](Part& part, Bytes answer) {
      const std::int64_t shard = &part - exchange.shards.data();
      ReplyPrefix reply;
      const auto mine = stretch_of(parts[0], shard);
      if (answer.size() != part.reply.span().size()) {
        throw net::NetError(net::NetFailure::kProtocol,
                            concat("shard ", shard, " has other dense parameters: ", answer.size(),
                                   " bytes for ", mine.size()));
      }
      std::memcpy(&reply, answer.data(), sizeof(reply));
      num_updates = std::min(num_updates, reply.num_updates);
      const std::byte* from = answer.data() + sizeof(reply);
      for (const std::span<float> values : parts) {
        if (!mine.empty()) std::memcpy(stretch_of(values, shard).data(), from, mine.size_bytes());
        from += mine.size_bytes();
      }
    });
    return num_updates;
  }

  void request_rows(ShardOp op,
                    const Clients& clients,
                    std::int64_t step,
                    std::span<const Key> keys,
                    StepRows::State& rows) {
    SATRAP_CHECK(!rows.is_under_way, "rows of another step are still under way");
    const Deadline deadline = new_deadline();
    rows.divide(keys, dims_, options.num_shards);
    rows.weights.resize(keys.size());
    rows.fill_pointers(rows.weights, dims_, [&](StepRows::State::Shard& part) -> const float* {
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
        const auto [begin, end] = rows.stretch(t, index(s));
        const auto stretch = keys.subspan(index(begin), index(end - begin));
        if (!stretch.empty()) std::memcpy(to, stretch.data(), stretch.size_bytes());
        to += stretch.size_bytes();
      }
      part.pull_answer =
          clients[index(s)]->call(op_of(op), step, request, part.reply.span(), deadline);
    }
  }

  const net::Endpoint& endpoint_;
  const std::vector<std::string> lines_;
  std::vector<std::int64_t> dims_;
  std::atomic<std::uint64_t> session_ = 0;
  Clients pulls_, others_, dense_;  // [num_shards]; each connects when first used
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
void ShardClient::wait_pushed(StepRows& rows) { impl_->wait_pushed(rows.state()); }
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
ShardClient::DenseVectors ShardClient::pull_dense_state(std::int64_t num_parameters) {
  DenseVectors values;
  for (auto* part : {&values.parameters, &values.first, &values.second}) {
    part->resize(index(num_parameters));
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
std::int64_t ShardClient::num_reconnects() const { return impl_->num_reconnects(); }
void ShardClient::stop() { impl_->stop(); }
void ShardClient::close_connections() { impl_->close_connections(); }

}  // namespace satrap::ps
