#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "satrap/core/bounded_queue.h"
#include "satrap/core/mutex.h"
#include "satrap/core/thread_group.h"
#include "satrap/data/row_deliveries.h"
#include "satrap/net/server.h"
#include "src/loader/loader_wire.h"

namespace satrap::loader {

/// A pass that a loader reads for one connection: a thread answers each kNext by the next delivery,
/// in their order, and reads ahead of them by one. An error, and the end, answer all that come
/// after them.
class SentPass {
 public:
  /// `client`: who reads it, for the log.
  SentPass(PassRequest request, std::string client);

  /// Answers the call, later. Never waits: a connection has at most kMaxInFlight calls.
  void answer(std::unique_ptr<net::ServerCall> call);

  /// Ends the reading; the thread ends soon. Thread-safe.
  void close();

 private:
  void run();
  void send_deliveries();
  void tell_waits() const;
  bool send(const std::vector<std::byte>& bytes);

  const PassRequest request_;
  const std::string client_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::nanoseconds wait_{0};  // for the client to ask for the deliveries that were ready
  BoundedQueue<std::unique_ptr<net::ServerCall>> calls_{kMaxInFlight + 1};
  Mutex mutex_;
  bool is_closed_ SATRAP_GUARDED_BY(mutex_) = false;
  std::unique_ptr<data::RowDeliveries> deliveries_ SATRAP_GUARDED_BY(mutex_);
  ThreadGroup thread_{[this] { close(); }};
};

}  // namespace satrap::loader
