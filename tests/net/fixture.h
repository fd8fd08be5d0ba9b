#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/net/connection.h"
#include "satrap/net/endpoint.h"
#include "satrap/net/file_rendezvous.h"
#include "satrap/net/net_error.h"
#include "satrap/net/server.h"
#include "tests/support/temporary_directory.h"

namespace satrap::net {

using Bytes = std::vector<std::byte>;

/// `count` bytes that depend on the seed.
inline Bytes some_bytes(std::size_t count, unsigned seed = 1) {
  Bytes bytes(count);
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::byte& b : bytes) {
    state = state * 1664525U + 1013904223U;
    b = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

inline Bytes copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

/// The failure that `action` throws, if any.
inline std::optional<NetFailure> failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const NetError& error) {
    return error.failure();
  }
  return std::nullopt;
}

inline bool is_lost(const std::function<void()>& action) {
  const auto failure = failure_of(action);
  return failure == NetFailure::kTimeout || failure == NetFailure::kClosed;
}

inline std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

/// The first of the bytes that another thread is receiving now: a deliberate race.
__attribute__((noinline, no_sanitize_thread)) inline std::byte peek(const std::byte* bytes) {
  return *static_cast<const volatile std::byte*>(bytes);
}

inline Deadline soon() { return Deadline::after_ms(30'000); }

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Threads wait at the gate until it is opened.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [this] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

/// Polls a condition that another thread makes true; false after 30 seconds.
inline bool eventually(const std::function<bool()>& condition) {
  const Deadline deadline = soon();
  while (!condition()) {
    if (deadline.has_passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

inline void echo(std::unique_ptr<ServerCall>& call) { call->reply(call->payload()); }

/// A store in a folder, and an endpoint for the server and one for the client, as in two processes.
class NetTest : public testing::Test {
 protected:
  NetTest() : store_(std::make_shared<FileRendezvous>(folder_.path())) {}

  static EndpointOptions options() {
    EndpointOptions options;
    options.token = "secret";
    return options;
  }

  std::unique_ptr<Server> serve(Server::Handler handler, const ServerOptions& server_options = {}) {
    return std::make_unique<Server>(server_end_, *store_, "shard", server_options,
                                    std::move(handler));
  }
  Connection connect() { return {client_end_, *store_, "shard", "test", soon()}; }

  RequestBuffer request(std::span<const std::byte> payload) { return {client_end_, {payload}}; }
  RequestBuffer request(std::int64_t number) {
    return request(std::as_bytes(std::span(&number, 1)));
  }

  TemporaryDirectory folder_;
  std::shared_ptr<FileRendezvous> store_;
  Endpoint server_end_{options()};
  Endpoint client_end_{options()};
};

}  // namespace satrap::net
