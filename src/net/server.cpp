#include "satrap/net/server.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/thread_name.h"
#include "src/net/bytes.h"
#include "src/net/poller.h"
#include "src/net/session.h"
#include "src/net/socket.h"
#include "src/net/token.h"
#include "src/net/worker_pool.h"

namespace satrap::net {
namespace {

constexpr std::size_t kMaxStrangers = 256;

ServerOptions checked(const ServerOptions& options) {
  SATRAP_CHECK(options.num_workers >= 0, "num_workers ", options.num_workers);
  SATRAP_CHECK(options.max_in_flight >= 1, "max_in_flight ", options.max_in_flight);
  SATRAP_CHECK(options.slot_bytes >= 2 * kRequestHeaderBytes, "slot_bytes ", options.slot_bytes);
  SATRAP_CHECK(options.max_request_bytes >= 0, "max_request_bytes ", options.max_request_bytes);
  return options;
}

// Connected, but not yet identified.
struct Stranger {
  Stranger(Fd fd, std::int64_t timeout_ms)
      : socket(std::move(fd), kMaxHelloBytes), deadline(Deadline::after_ms(timeout_ms)) {}
  FrameSocket socket;
  Deadline deadline;
};

struct Member {
  std::shared_ptr<Session> session;
  std::thread thread{};
  std::atomic<bool> is_done{false};
};

// The requests of one connection that must be handled in order.
struct Strand {
  std::mutex mutex;
  std::deque<std::unique_ptr<ServerCall>> waiting;
  bool is_running = false;
};

}  // namespace

class Server::Impl {
 public:
  Impl(const Endpoint& endpoint,
       Store& store,
       std::string name,
       const ServerOptions& options,
       Handler handler)
      : endpoint_(endpoint.impl()),
        name_(std::move(name)),
        options_(checked(options)),
        handler_(std::move(handler)),
        listener_(listen_tcp(endpoint_->address, 0)),
        address(concat(endpoint_->address, " ", local_port(listener_))) {
    if (options_.num_workers > 0) workers_ = std::make_unique<WorkerPool>(options_.num_workers);
    thread_ = std::thread([this] { run(); });
    try {
      store.set(address_key(name_), address);
    } catch (...) {
      stop();
      throw;
    }
  }

  ~Impl() { stop(); }

  std::int64_t num_connections() const { return num_open_; }

 private:
  void stop() {
    stop_ = true;
    wake_.notify();
    thread_.join();
    for (Member& member : members_) member.session->close("the server ends");
    for (Member& member : members_) member.thread.join();
    workers_.reset();
    members_.clear();
  }

  void run() {
    set_thread_name("net-accept");
    while (!stop_) {
      std::vector<pollfd> fds{{wake_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      Deadline next = Deadline::after_ms(60'000);
      for (const Stranger& stranger : strangers_) {
        fds.push_back({stranger.socket.fd(), POLLIN, 0});
        next = Deadline(std::min(next.at(), stranger.deadline.at()));
      }
      poll(fds.data(), fds.size(), static_cast<int>(next.remaining_ms()));
      wake_.clear();
      if (stop_) return;
      std::size_t i = 2;
      for (auto stranger = strangers_.begin(); stranger != strangers_.end(); ++i) {
        const auto current = stranger++;
        if (fds[i].revents != 0 || current->deadline.has_passed()) meet(current);
      }
      if ((fds[1].revents & POLLIN) != 0) accept();
      members_.remove_if([](Member& member) {
        const bool is_done = member.is_done;  // read once: it may become true between two reads
        if (is_done) member.thread.join();
        return is_done;
      });
    }
  }

  void accept() {
    while (Fd fd = accept_tcp(listener_)) {
      if (strangers_.size() >= kMaxStrangers)
        strangers_.pop_front();  // the one that has been silent longest
      strangers_.emplace_back(std::move(fd), options_.setup_timeout_ms);
    }
  }

  // Handles a stranger that has sent something, or has been silent for too long.
  void meet(std::list<Stranger>::iterator stranger) {
    try {
      const std::vector<std::string> frames = stranger->socket.receive();
      if (!frames.empty()) {
        welcome(std::move(stranger->socket), frames.front());
      } else if (!stranger->deadline.has_passed()) {
        return;
      }
    } catch (const NetError& error) {
      if (error.failure() != NetFailure::kClosed) {
        log_warning("server '{}': a connection was refused: {}", name_, error.what());
      }
    } catch (const std::exception& error) {
      log_error("server '{}': a connection was refused: {}", name_, error.what());
    }
    strangers_.erase(stranger);
  }

  void welcome(FrameSocket socket, const std::string& hello) {
    ByteReader reader(hello);
    std::string refusal, client, gloo_address;
    if (reader.get<std::uint64_t>() != kMagic) {
      refusal = "not a client of this version";
    } else if (!tokens_match(reader.get_text(), endpoint_->options.token)) {
      refusal = "wrong token";
    } else if (const std::string wanted = reader.get_text(); wanted != name_) {
      refusal = concat("this is server '", name_, "', not '", wanted, "'");
    } else if (num_open_ >= options_.max_connections) {
      refusal = concat("there are ", num_open_, " connections already");
    } else {
      client = reader.get_text();
      gloo_address = reader.get_text();
    }
    if (!refusal.empty()) refuse(socket, refusal);
    auto control = std::make_shared<FrameSocket>(std::move(socket));
    try {
      start(std::make_shared<Session>(endpoint_, options_, client), control, gloo_address);
    } catch (const std::exception& error) {  // no memory, no thread, no descriptor
      refuse(*control, concat("no resources for one more connection: ", error.what()));
    }
  }

  [[noreturn]] static void refuse(FrameSocket& socket, const std::string& reason) {
    socket.send(ByteWriter()
                    .put(static_cast<std::uint8_t>(HelloStatus::kRefused))
                    .put_text(reason)
                    .bytes());
    throw NetError(NetFailure::kRefused, reason);
  }

  void start(std::shared_ptr<Session> session,
             const std::shared_ptr<FrameSocket>& control,
             const std::string& gloo_address) {
    Member& member = members_.emplace_back(std::move(session));
    ++num_open_;
    try {
      member.thread = std::thread([this, &member, control, gloo_address] {
        set_thread_name("net-read");
        serve(*member.session, std::move(*control), gloo_address);
        --num_open_;
        member.is_done = true;
        wake_.notify();
      });
    } catch (...) {
      --num_open_;
      members_.pop_back();
      throw;
    }
  }

  void serve(Session& session, FrameSocket control, const std::string& gloo_address) {
    auto strand = std::make_shared<Strand>();
    try {
      session.run(std::move(control), gloo_address,
                  [this, &strand](std::unique_ptr<ServerCall> call, bool ordered) {
                    dispatch(strand, std::move(call), ordered);
                  });
    } catch (const NetError& error) {
      const bool is_ordinary = error.failure() == NetFailure::kClosed;
      log_at(is_ordinary ? LogLevel::kDebug : LogLevel::kWarning,
             "server '{}': client '{}' left: {}", name_, session.client(), error.what());
      session.close(error.what());
    } catch (const std::exception& error) {
      log_error("server '{}': client '{}' dropped: {}", name_, session.client(), error.what());
      session.close(error.what());
    }
  }

  void dispatch(const std::shared_ptr<Strand>& strand,
                std::unique_ptr<ServerCall> call,
                bool ordered) {
    if (!workers_) {
      handle(std::move(call));
    } else if (!ordered) {
      auto shared = std::make_shared<std::unique_ptr<ServerCall>>(std::move(call));
      workers_->run([this, shared] { handle(std::move(*shared)); });
    } else {
      const std::lock_guard lock(strand->mutex);
      strand->waiting.push_back(std::move(call));
      if (!std::exchange(strand->is_running, true)) {
        workers_->run([this, strand] { run_strand(strand); });
      }
    }
  }

  void run_strand(const std::shared_ptr<Strand>& strand) {
    for (;;) {
      std::unique_ptr<ServerCall> call;
      {
        const std::lock_guard lock(strand->mutex);
        strand->is_running = !strand->waiting.empty();
        if (!strand->is_running) return;
        call = std::move(strand->waiting.front());
        strand->waiting.pop_front();
      }
      handle(std::move(call));
    }
  }

  void handle(std::unique_ptr<ServerCall> call) {
    try {
      handler_(call);
    } catch (const std::exception& error) {
      log_warning("server '{}': a handler failed: {}", name_, error.what());
      if (call && !call->is_answered()) call->fail(error.what());
    }
  }

  const std::shared_ptr<Endpoint::Impl> endpoint_;
  const std::string name_;
  const ServerOptions options_;
  const Handler handler_;
  Fd listener_;
  WakeUp wake_;
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> num_open_{0};
  std::unique_ptr<WorkerPool> workers_;
  std::list<Stranger> strangers_;  // of the accepting thread
  std::list<Member> members_;      // likewise, until it has ended
  std::thread thread_;

 public:
  const std::string address;
};

Server::Server(const Endpoint& endpoint,
               Store& store,
               const std::string& name,
               ServerOptions options,
               Handler handler)
    : impl_(std::make_unique<Impl>(endpoint, store, name, options, std::move(handler))) {}
Server::~Server() = default;
const std::string& Server::address() const { return impl_->address; }
std::int64_t Server::num_connections() const { return impl_->num_connections(); }

}  // namespace satrap::net
