#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "satrap/net/reconnecting_client.h"
#include "satrap/ps/shard_client.h"
#include "src/ps/shard_wire.h"
#include "src/ps/step_rows.h"

namespace satrap::ps {

/// Connections to all shards, and the division of requests among them. Steps, dense parameters and
/// whole rows have a file each.
class ShardClientImpl final : public ShardClient {
 public:
  ShardClientImpl(const net::Endpoint& endpoint,
                  const std::shared_ptr<net::Rendezvous>& store,
                  const std::vector<table::TableSpec>& tables,
                  std::uint64_t seed,
                  const Options& options);

  void begin(const ShardJob& job) override;
  void join(std::uint64_t session) override;
  void begin_snapshot(std::int64_t step) override;
  std::vector<SnapshotFile> write_snapshot(const std::string& directory) override;
  std::vector<ShardStats> stats() override;
  std::int64_t num_reconnects() const override;
  void close_connections() override;

  void pull(std::int64_t step,
            std::span<const Key> keys,
            StepRows& rows,
            std::int64_t least_version) override;
  std::int64_t max_pulls() const override { return kMaxPulls; }
  void wait(StepRows& rows) override;
  void prepare_push(StepRows& rows) override;
  void push(std::int64_t step, StepRows& rows, bool skip) override;
  void wait_pushed(StepRows& rows) override;
  void end_pulls(std::int64_t step) override;
  void wait_applied(std::int64_t step) override;
  bool is_applied(std::int64_t step) override;
  void lookup(std::span<const Key> keys, StepRows& rows) override;
  void stop() override;

  void put_dense(const DenseVectors& values, const DenseOptimizer& optimizer) override;
  void exchange_dense(std::int64_t step,
                      std::span<const float> gradient,
                      float scale,
                      double lr,
                      DenseExchange& exchange) override;
  void wait_dense(DenseExchange& exchange, std::span<float> parameters) override;
  DenseVectors pull_dense_state(std::int64_t num_parameters) override;

  void fetch(std::span<const Key> keys, std::span<std::byte* const> rows) override;
  void put(std::int64_t step,
           std::span<const Key> keys,
           std::span<const std::byte* const> rows) override;

  static_assert(2 * kMaxDenseExchanges <= kMaxInFlight);

 private:
  using Pending = std::unique_ptr<net::ReconnectingClient::Pending>;
  using Deadline = net::Deadline;
  using Bytes = std::span<const std::byte>;
  using Clients = std::vector<std::unique_ptr<net::ReconnectingClient>>;
  static constexpr auto kNothing = [](auto&, Bytes) {};

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  Deadline new_deadline() const {
    const Deadline deadline = Deadline::after_ms(options_.timeout_ms);
    return options_.stop == nullptr ? deadline : deadline.unless(*options_.stop);
  }

  template <class Action>
  void for_each_client(Action&& action) const {
    for (const Clients* clients : {&pulls_, &others_, &dense_}) {
      for (const auto& client : *clients) action(*client);
    }
  }

  RequestPrefix new_prefix(std::uint32_t flags = 0) const;
  void write_prefix(const net::RequestBuffer& request, std::uint32_t flags) const;
  net::RequestBuffer plain_request(std::uint32_t flags = 0) const;

  /// The prefix, a shard's keys, and room for more at the end of the payload.
  net::RequestBuffer request_of_keys(RequestPrefix prefix,
                                     const StepRows::State& rows,
                                     std::int64_t shard,
                                     std::span<const Key> keys,
                                     std::int64_t more_bytes = 0) const;

  /// The range of dense vectors on shard `shard`: [begin, end).
  std::pair<std::int64_t, std::int64_t> stretch_of(std::int64_t size, std::int64_t shard) const {
    return {shard * size / options_.num_shards, (shard + 1) * size / options_.num_shards};
  }
  template <class T>
  std::span<T> stretch_of(std::span<T> all, std::int64_t shard) const {
    const auto [begin, end] = stretch_of(std::ssize(all), shard);
    return all.subspan(index(begin), index(end - begin));
  }

  /// Sends the same request to all shards at once; `take` gets the answers in the order of shards.
  template <class Take>
  void ask_all(ShardOp op, std::int64_t step, const net::RequestBuffer& request, Take&& take) {
    const Deadline deadline = new_deadline();
    std::vector<Pending> answers;
    for (const auto& client : others_) {
      // A buffer belongs to one call at a time.
      answers.push_back(client->call_for_any_size(
          op_of(op), step, net::RequestBuffer(endpoint_, {request.payload()}), deadline));
    }
    wait_for(answers, std::identity{}, [&](Pending&, Bytes answer) { take(answer); });
  }
  void ask_all(ShardOp op, std::int64_t step, const net::RequestBuffer& request) {
    ask_all(op, step, request, [](Bytes) {});
  }

  /// Sends a separate request, request_of(s), to each shard at once; answers have no content.
  template <class RequestOf>
  void send_to_each(ShardOp op, std::int64_t step, RequestOf&& request_of) {
    const Deadline deadline = new_deadline();
    std::vector<Pending> answers;
    for (std::int64_t s = 0; s < options_.num_shards; ++s) {
      answers.push_back(others_[index(s)]->call(op_of(op), step, request_of(s),
                                                std::span<std::byte>(), deadline));
    }
    wait_for(answers, std::identity{}, kNothing);
  }

  /// Waits for each answer_of(each) in turn, even after an error, because their memory is written
  /// to until then; throws the first error. `take` gets each element with its answer.
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

  void request_rows(ShardOp op,
                    const Clients& clients,
                    std::int64_t step,
                    const RequestPrefix& prefix,
                    std::span<const Key> keys,
                    StepRows::State& rows);
  void take_rows(StepRows::State& rows, StepRows::State::Shard& part, Bytes reply) const;

  /// Requests parameters, and with three parts the optimizer's state.
  void ask_for_dense(DenseExchange::State& exchange,
                     std::int64_t num_parts,
                     std::int64_t num_parameters,
                     Deadline deadline);
  /// Receives parts of [num_parts, size] values into `parts`; returns the least number of updates.
  double take_dense(DenseExchange::State& exchange, std::span<const std::span<float>> parts) const;

  const Options options_;
  const net::Endpoint& endpoint_;
  const std::vector<std::string> lines_;
  std::vector<std::int64_t> dims_;        // [num_tables]
  std::vector<std::int64_t> row_floats_;  // [num_tables]: of a whole row
  std::atomic<std::uint64_t> session_ = 0;
  Clients pulls_, others_, dense_;  // [num_shards]; each connects when first used
};

}  // namespace satrap::ps
