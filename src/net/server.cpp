#include "satrap/net/server.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/mutex.h"
#include "satrap/core/thread_group.h"
#include "satrap/core/thread_name.h"
#include "src/net/bytes.h"
#include "src/net/door.h"
#include "src/net/poller.h"
#include "src/net/proof.h"
#include "src/net/session.h"
#include "src/net/socket.h"
#include "src/net/worker_pool.h"

namespace satrap::net {
namespace {

ServerOptions checked(const ServerOptions& options) {
  SATRAP_CHECK(options.num_workers >= 0, "num_workers ", options.num_workers);
  SATRAP_CHECK(options.max_in_flight >= 1, "max_in_flight ", options.max_in_flight);
  SATRAP_CHECK(options.slot_bytes >= 2 * kRequestHeaderBytes, "slot_bytes ", options.slot_bytes);
  SATRAP_CHECK(options.max_request_bytes >= 0, "max_request_bytes ", options.max_request_bytes);
  return options;
}

struct Member {
  std::shared_ptr<Session> session;
  std::thread thread{};
  std::atomic<bool> is_done{false};
};

// The requests of one connection that must be handled in order.
struct Strand {
  Mutex mutex;
  std::deque<std::unique_ptr<ServerCall>> waiting SATRAP_GUARDED_BY(mutex);
  bool is_running SATRAP_GUARDED_BY(mutex) = false;
};

}  // namespace

class Server::Impl {
 public:
  Impl(const Endpoint& endpoint,
       Rendezvous& store,
       std::string name,
       const ServerOptions& options,
       Handler handler)
      : endpoint_(endpoint.impl()),
        name_(std::move(name)),
        options_(checked(options)),
        handler_(std::move(handler)),
        door_(listen_tcp(endpoint_->address, 0),
              {.magic = kMagic,
               .token = endpoint_->options.token,
               .name = concat("server '", name_, "'"),
               .timeout_ms = options_.setup_timeout_ms}),
        address(concat(endpoint_->address, " ", door_.port())) {
    if (options_.num_workers > 0) workers_ = std::make_unique<WorkerPool>(options_.num_workers);
    thread_ = start_thread("net-accept", [this] { run(); });
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
    while (!stop_) {
      std::vector<pollfd> fds{{wake_.fd(), POLLIN, 0}};
      door_.watch(fds);
      poll(fds.data(), fds.size(), static_cast<int>(door_.next().remaining_ms()));
      wake_.clear();
      if (stop_) return;
      door_.serve(fds, [this](Visitor& visitor) { enter(visitor); });
      members_.remove_if([](Member& member) {
        const bool is_done = member.is_done;  // read once: it may become true between two reads
        if (is_done) member.thread.join();
        return is_done;
      });
    }
  }

  void enter(Visitor& visitor) {
    ByteReader reader(visitor.request());
    const Purpose purpose{reader.get<std::uint8_t>()};
    if (const std::string wanted = reader.get_text(); wanted != name_) {
      visitor.refuse(concat("this is server '", name_, "', not '", wanted, "'"));
    }
    if (purpose == Purpose::kControl) {
      begin_session(visitor, reader.get_text());
    } else {
      complete_session(visitor, reader.get_text());
    }
  }

  void begin_session(Visitor& visitor, const std::string& client) {
    if (num_open_ >= options_.max_connections) {
      visitor.refuse(concat("there are ", num_open_, " connections already"));
    }
    std::shared_ptr<Session> session;
    try {
      session = std::make_shared<Session>(endpoint_, options_, client);
      start(session);
    } catch (const std::exception& error) {  // no memory, no thread, no descriptor
      visitor.refuse(concat("no resources for one more connection: ", error.what()));
    }
    try {
      session->take_control(visitor.accept(door_.token(), session->answer()));
    } catch (...) {
      session->close("its client has left");
      throw;
    }
  }

  void complete_session(Visitor& visitor, const std::string& key) {
    for (const Member& member : members_) {
      if (!is_same_secret(member.session->key(), key)) continue;
      Fd socket = visitor.accept(door_.token(), "").release();
      if (!member.session->take_link(std::move(socket))) {
        throw NetError(NetFailure::kProtocol, "its connection has a link already");
      }
      return;
    }
    visitor.refuse("the connection to which it belongs has ended");
  }

  void start(std::shared_ptr<Session> session) {
    Member& member = members_.emplace_back(std::move(session));
    ++num_open_;
    try {
      member.thread = std::thread([this, &member] {
        set_thread_name("net-read");
        serve(*member.session);
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

  void serve(Session& session) {
    auto strand = std::make_shared<Strand>();
    try {
      session.run([this, &strand](std::unique_ptr<ServerCall> call, bool ordered) {
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
    if (options_.on_closed) options_.on_closed(&session);
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
      const MutexLock lock(strand->mutex);
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
        const MutexLock lock(strand->mutex);
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
  Door door_;  // of the accepting thread, once there is one
  WakeUp wake_;
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> num_open_{0};
  std::unique_ptr<WorkerPool> workers_;
  std::list<Member> members_;  // likewise, until it has ended
  std::thread thread_;

 public:
  const std::string address;
};

Server::Server(const Endpoint& endpoint,
               Rendezvous& store,
               const std::string& name,
               const ServerOptions& options,
               Handler handler)
    : impl_(std::make_unique<Impl>(endpoint, store, name, options, std::move(handler))) {}
Server::~Server() = default;
std::optional<std::string> Server::find(Rendezvous& store, const std::string& name) {
  return store.get(address_key(name));
}

const std::string& Server::address() const { return impl_->address; }
std::int64_t Server::num_connections() const { return impl_->num_connections(); }

}  // namespace satrap::net
