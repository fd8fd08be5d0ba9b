#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "satrap/net/connection.h"
#include "src/ps/shard_messages.h"
#include "src/ps/shard_wire.h"
#include "tests/ps/shard_fixture.h"

namespace satrap::ps {

using Bytes = std::vector<std::byte>;

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline Bytes bytes_of_text(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Two shards with a job, and a connection to the first for any request.
class ShardRequests : public ShardTest {
 protected:
  static constexpr std::uint64_t kSession = 5;

  void SetUp() override {
    servers_ = serve(2, {.num_workers = 2});
    clients_ = clients_of({.num_shards = 2, .job = job_of(1, 1, true)});
    raw_ = connect();
  }

  std::unique_ptr<net::Connection> connect() {
    return std::make_unique<net::Connection>(client_end_, *store_, shard_name(0), "raw",
                                             net::Deadline::after_ms(30'000));
  }

  static Bytes prefix(std::uint32_t flags = 0,
                      std::uint64_t session = kSession,
                      FloatType encoding = FloatType::kFp32) {
    // Built in place: with AVX-512, copies of 64 bytes on the stack are not aligned as GCC 12
    // expects where AddressSanitizer detects uses after a return.
    Bytes bytes(sizeof(RequestPrefix));
    auto* value = new (bytes.data()) RequestPrefix{};
    value->session = session;
    value->encoding = encoding;
    value->flags = flags;
    return bytes;
  }

  /// The answer, or the error as text.
  struct Answer {
    Bytes bytes;
    std::string error;
  };
  Answer ask(ShardOp op, std::int64_t step, const Bytes& payload, std::int32_t rank = 0) {
    return ask(*raw_, op, step, payload, rank);
  }
  Answer ask(net::Connection& connection,
             ShardOp op,
             std::int64_t step,
             const Bytes& payload,
             std::int32_t rank = 0) {
    net::CallOptions options;
    options.tag = {.client = 1, .sequence = ++sequence_, .step = step, .rank = rank};
    try {
      net::Ticket ticket = connection.call_for_any_size(op_of(op), {client_end_, {payload}},
                                                        net::Deadline::after_ms(30'000), options);
      const auto answer = ticket.wait();
      return {{answer.begin(), answer.end()}, ""};
    } catch (const net::NetError& error) {
      return {{}, error.what()};
    }
  }
  std::string error_of(ShardOp op, std::int64_t step, const Bytes& payload, std::int32_t rank = 0) {
    return ask(op, step, payload, rank).error;
  }

  /// Keys of shard 0, ascending.
  std::vector<Key> own_keys(std::uint64_t num_ids) const {
    std::vector<Key> keys = all_keys(num_ids);
    std::erase_if(keys, [](Key key) { return table::shard_of(key, 2) != 0; });
    return keys;
  }
  std::int64_t num_values(const std::vector<Key>& keys) const {
    std::int64_t sum = 0;
    for (const Key key : keys) sum += tables_[static_cast<std::size_t>(table_of(key))].dim;
    return sum;
  }

  void expect_training_works() {
    Cluster cluster{.num_shards = 2, .job = job_of(1, 1, true)};
    const Oracle oracle(tables_);
    train(*clients_[0], cluster, 0);
    clients_[0]->wait_applied(cluster.num_steps);
    expect_rows(*clients_[0], oracle, expected_rows(oracle, cluster).back(), cluster.num_ids);
  }

  std::vector<std::unique_ptr<ShardServer>> servers_;
  std::vector<std::unique_ptr<ShardClient>> clients_;
  std::unique_ptr<net::Connection> raw_;
  std::uint64_t sequence_ = 0;
};

MATCHER_P(has, part, "") { return arg.find(part) != std::string::npos; }

}  // namespace satrap::ps
