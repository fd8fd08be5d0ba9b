// The part of ShardClient for the dense parameters of async jobs.

#include <algorithm>
#include <cstring>
#include <limits>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"
#include "src/ps/shard_client_impl.h"

namespace satrap::ps {

void ShardClientImpl::put_dense(const DenseVectors& values, const DenseOptimizer& optimizer) {
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

void ShardClientImpl::exchange_dense(std::int64_t step,
                                     std::span<const float> gradient,
                                     float scale,
                                     double lr,
                                     DenseExchange& dense_exchange) {
  DenseExchange::State& exchange = dense_exchange.state();
  RequestPrefix prefix{};
  prefix.session = session_;
  prefix.scale = scale;
  prefix.lr = lr;
  const Deadline deadline = new_deadline();
  exchange.shards.resize(index(options_.num_shards));
  for (std::int64_t s = 0; s < options_.num_shards; ++s) {
    const net::RequestBuffer push(
        endpoint_, {std::as_bytes(std::span(&prefix, 1)), std::as_bytes(stretch_of(gradient, s))});
    exchange.shards[index(s)].push_answer = dense_[index(s)]->call(
        op_of(ShardOp::kPushDense), step, push, std::span<std::byte>(), deadline);
  }
  ask_for_dense(exchange, 1, std::ssize(gradient), deadline);
}

void ShardClientImpl::wait_dense(DenseExchange& exchange, std::span<float> parameters) {
  wait_for(exchange.state().shards, &DenseExchange::State::Shard::push_answer, kNothing);
  take_dense(exchange.state(), std::span(&parameters, 1));
}

DenseVectors ShardClientImpl::pull_dense_state(std::int64_t num_parameters) {
  DenseVectors values;
  for (auto* part : {&values.parameters, &values.first, &values.second}) {
    part->resize(index(num_parameters));
  }
  const std::span<float> parts[] = {values.parameters, values.first, values.second};
  DenseExchange::State exchange;
  exchange.shards.resize(index(options_.num_shards));
  ask_for_dense(exchange, std::ssize(parts), num_parameters, new_deadline());
  values.num_updates = take_dense(exchange, parts);
  return values;
}

void ShardClientImpl::ask_for_dense(DenseExchange::State& exchange,
                                    std::int64_t num_parts,
                                    std::int64_t num_parameters,
                                    Deadline deadline) {
  const std::uint32_t flags = num_parts > 1 ? kWithState : 0U;
  for (std::int64_t s = 0; s < options_.num_shards; ++s) {
    DenseExchange::State::Shard& part = exchange.shards[index(s)];
    const auto [begin, end] = stretch_of(num_parameters, s);
    part.reply.resize(sizeof(ReplyPrefix) + index(num_parts * (end - begin)) * sizeof(float));
    part.pull_answer = dense_[index(s)]->call(op_of(ShardOp::kPullDense), 0, plain_request(flags),
                                              part.reply.span(), deadline);
  }
}

double ShardClientImpl::take_dense(DenseExchange::State& exchange,
                                   std::span<const std::span<float>> parts) const {
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

}  // namespace satrap::ps
