#include "satrap/net/reconnecting_client.h"

#include <atomic>
#include <exception>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/mutex.h"

namespace satrap::net {

// One request until it has been waited for. Guarded by Impl's mutex, except for `ticket`'s wait.
struct ReconnectingClient::Pending::Request {
  Op op;
  RequestBuffer buffer;
  std::optional<std::span<std::byte>> reply;
  Deadline deadline;
  CallOptions options;
  std::shared_ptr<Ticket> ticket{};  // on the connection of `generation`
  std::exception_ptr refusal{};      // instead: it cannot be sent on any connection
  std::int64_t generation = 0;
};

class ReconnectingClient::Impl : public std::enable_shared_from_this<Impl> {
 public:
  using Request = Pending::Request;

  Impl(const Endpoint& endpoint,
       std::shared_ptr<Rendezvous> store,
       std::string server,
       std::string name,
       std::int32_t rank,
       std::int64_t attempt_ms)
      : endpoint_(endpoint),
        store_(std::move(store)),
        server_(std::move(server)),
        name_(std::move(name)),
        rank_(rank),
        attempt_ms_(attempt_ms) {
    std::random_device device;
    while (id == 0) id = (std::uint64_t{device()} << 32) | device();
  }

  std::unique_ptr<Pending> call(Op op,
                                std::int64_t step,
                                const RequestBuffer& buffer,
                                std::optional<std::span<std::byte>> reply,
                                Deadline deadline,
                                bool ordered) {
    const MutexLock lock(mutex_);
    while (!has_room() && changed_.wait_until(mutex_, deadline.at())) continue;
    if (!has_room()) {
      throw NetError(NetFailure::kTimeout,
                     concat("'", name_, "': nobody has waited for the answers of the ",
                            unanswered_.size(), " pending requests"));
    }
    throw_if_ended();
    if (!connection_) reconnect(deadline);
    connection_->check_size(buffer);
    CallOptions options{{id, next_sequence_, step, rank_}, ordered};
    auto request = std::make_shared<Request>(Request{op, buffer, reply, deadline, options});
    unanswered_.emplace(next_sequence_++, request);
    try_to_send(*request);  // else the first thread that waits resends it
    return std::unique_ptr<Pending>(new Pending(shared_from_this(), std::move(request)));
  }

  std::span<const std::byte> wait(Request& request) {
    for (;;) {
      std::shared_ptr<Ticket> ticket;
      std::int64_t generation = 0;
      {
        const MutexLock lock(mutex_);
        ticket = request.ticket;
        generation = request.generation;
        if (request.refusal) {
          unanswered_.erase(request.options.tag.sequence);
          changed_.notify_all();
          std::rethrow_exception(request.refusal);
        }
      }
      try {
        if (ticket) {
          const std::span<const std::byte> reply = ticket->wait();
          if (is_answered(request, generation)) return reply;
          continue;
        }
      } catch (const NetError& error) {
        if (!error.is_connection_lost() || request.deadline.has_passed()) {
          give_up(request);
          throw;
        }
        if (!is_ended_) log_info("'{}': connection lost: {}", name_, error.what());
      }
      ticket.reset();
      try {
        renew(generation, request.deadline);
      } catch (const NetError&) {
        give_up(request);
        throw;
      }
    }
  }

  void end() {
    is_ended_ = true;  // an attempt to connect ends by itself
    const MutexLock lock(mutex_);
    connection_.reset();
    changed_.notify_all();
  }

  void close_connection() {
    const MutexLock lock(mutex_);
    if (connection_) connection_->close("asked to");
  }

  std::int64_t num_reconnects() {
    const MutexLock lock(mutex_);
    return generation_ > 0 ? generation_ - 1 : 0;
  }

  std::uint64_t id = 0;

 private:
  bool has_room() const SATRAP_REQUIRES(mutex_) {
    return is_ended_ || !connection_ ||
           static_cast<std::int64_t>(unanswered_.size()) < connection_->max_in_flight();
  }

  // Removes the request, unless another thread has meanwhile resent it on a new connection:
  // then the answer will be written again, and must be waited for again.
  bool is_answered(const Request& request, std::int64_t generation) {
    const MutexLock lock(mutex_);
    if (request.generation != generation) return false;
    unanswered_.erase(request.options.tag.sequence);
    changed_.notify_all();
    return true;
  }

  // Removes the request; once it returns, nothing writes to its reply.
  void give_up(Request& request) {
    std::shared_ptr<Ticket> ticket;
    const MutexLock lock(mutex_);
    unanswered_.erase(request.options.tag.sequence);
    changed_.notify_all();
    ticket = std::exchange(request.ticket, nullptr);
    if (ticket && request.deadline.has_passed() && connection_)
      connection_->close("a deadline passed");
  }

  // Makes one attempt to send a request on the current connection.
  void send(Request& request) SATRAP_REQUIRES(mutex_) {
    request.generation = generation_;
    request.ticket.reset();
    const Deadline attempt = request.deadline.at_most_ms(attempt_ms_);
    request.ticket = std::make_shared<Ticket>(
        request.reply
            ? connection_->call(request.op, request.buffer, *request.reply, attempt,
                                request.options)
            : connection_->call_for_any_size(request.op, request.buffer, attempt, request.options));
  }

  // The same, but returns false if the connection is lost.
  bool try_to_send(Request& request) SATRAP_REQUIRES(mutex_) {
    try {
      send(request);
    } catch (const NetError& error) {
      if (error.is_connection_lost()) {
        log_debug("'{}' to '{}': {}", name_, server_, error.what());
        return false;
      }
      request.refusal = std::current_exception();
    }
    return true;
  }

  // Replaces the connection of `generation`, unless another thread has done so, and resends all
  // unanswered requests.
  void renew(std::int64_t generation, Deadline deadline) {
    const MutexLock lock(mutex_);
    throw_if_ended();
    if (generation != generation_) return;
    reconnect(deadline);
    for (auto& [sequence, request] : unanswered_) {
      if (!try_to_send(*request)) return;  // the waiting thread returns here
    }
  }

  void reconnect(Deadline deadline) SATRAP_REQUIRES(mutex_) {
    if (connection_) connection_->close("to be made anew");
    for (;;) {
      try {
        connection_.emplace(endpoint_, *store_, server_, name_, deadline.at_most_ms(kConnectMs));
        break;
      } catch (const NetError& error) {
        throw_if_ended();
        if (error.failure() != NetFailure::kTimeout || deadline.has_passed()) throw;
      }
    }
    ++generation_;
    if (generation_ > 1) log_info("'{}': connected to '{}' again", name_, server_);
  }

  void throw_if_ended() const {
    if (is_ended_) {
      throw NetError(NetFailure::kClosed, concat("'", name_, "' to '", server_, "' has ended"));
    }
  }

  // Time between two checks whether the client has ended.
  static constexpr std::int64_t kConnectMs = 5000;

  const Endpoint& endpoint_;
  const std::shared_ptr<Rendezvous> store_;
  const std::string server_, name_;
  const std::int32_t rank_;
  const std::int64_t attempt_ms_;
  Mutex mutex_;
  CondVar changed_;
  std::atomic<bool> is_ended_ = false;
  std::optional<Connection> connection_ SATRAP_GUARDED_BY(mutex_);
  std::int64_t generation_ SATRAP_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_sequence_ SATRAP_GUARDED_BY(mutex_) = 1;
  std::map<std::uint64_t, std::shared_ptr<Request>> unanswered_ SATRAP_GUARDED_BY(mutex_);
};

ReconnectingClient::Pending::Pending(std::shared_ptr<Impl> impl, std::shared_ptr<Request> request)
    : impl_(std::move(impl)), request_(std::move(request)) {}

ReconnectingClient::Pending::~Pending() {
  if (is_waited_) return;
  try {
    wait();
  } catch (const std::exception& error) {
    log_debug("an answer nobody waited for: {}", error.what());
  }
}

std::span<const std::byte> ReconnectingClient::Pending::wait() {
  SATRAP_CHECK(!is_waited_, "a second wait for one answer");
  is_waited_ = true;
  return impl_->wait(*request_);
}

ReconnectingClient::ReconnectingClient(const Endpoint& endpoint,
                                       std::shared_ptr<Rendezvous> store,
                                       std::string server,
                                       std::string name,
                                       std::int32_t rank,
                                       std::int64_t attempt_ms)
    : impl_(std::make_shared<Impl>(endpoint,
                                   std::move(store),
                                   std::move(server),
                                   std::move(name),
                                   rank,
                                   attempt_ms)) {}

ReconnectingClient::~ReconnectingClient() { impl_->end(); }

std::unique_ptr<ReconnectingClient::Pending> ReconnectingClient::call(Op op,
                                                                      std::int64_t step,
                                                                      const RequestBuffer& request,
                                                                      std::span<std::byte> reply,
                                                                      Deadline deadline,
                                                                      bool ordered) {
  return impl_->call(op, step, request, reply, deadline, ordered);
}

std::unique_ptr<ReconnectingClient::Pending> ReconnectingClient::call_for_any_size(
    Op op,
    std::int64_t step,
    const RequestBuffer& request,
    Deadline deadline,
    bool ordered) {
  return impl_->call(op, step, request, std::nullopt, deadline, ordered);
}

std::int64_t ReconnectingClient::num_reconnects() const { return impl_->num_reconnects(); }
void ReconnectingClient::close_connection() { impl_->close_connection(); }
void ReconnectingClient::end() { impl_->end(); }

}  // namespace satrap::net
