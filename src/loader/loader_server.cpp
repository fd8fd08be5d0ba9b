#include "satrap/loader/loader_server.h"

#include <algorithm>
#include <map>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/mutex.h"
#include "satrap/core/resource.h"
#include "satrap/net/server.h"
#include "src/loader/loader_wire.h"
#include "src/loader/sent_pass.h"

namespace satrap::loader {

std::int64_t LoaderServerOptions::threads_for(std::int64_t num_ranks) const {
  if (num_threads > 0) return num_threads;
  return std::max<std::int64_t>(1, num_cpus() / num_ranks);
}

class LoaderServer::Impl {
 public:
  Impl(const net::Endpoint& endpoint,
       std::shared_ptr<net::Rendezvous> store,
       const LoaderServerOptions& options)
      : store_(std::move(store)),
        options_(options),
        number_(store_->add(kCountKey, 1) - 1),
        server_(endpoint,
                *store_,
                server_name(number_),
                {.max_in_flight = kMaxInFlight + 1,
                 .slot_bytes = kSlotBytes,
                 .max_request_bytes = kMaxRequestBytes,
                 .on_closed = [this](const void* connection) { end(connection); }},
                [this](std::unique_ptr<net::ServerCall>& call) { handle(call); }) {
    store_->set(entry_key(number_), server_.address());
  }

  ~Impl() {
    try {
      store_->erase(entry_key(number_));
    } catch (const Error& error) {
      log_debug("the entry of loader {} stays in the store: {}", number_, error.what());
    }
  }

  std::int64_t number() const { return number_; }
  const std::string& address() const { return server_.address(); }

 private:
  static constexpr std::int64_t kSlotBytes = 4096;
  static constexpr std::int64_t kMaxRequestBytes = std::int64_t{64} << 20;  // names of many files

  /// On the thread that reads the connection, as end().
  void handle(std::unique_ptr<net::ServerCall>& call) {
    if (call->op() == kOpen) {
      open(*call);
    } else if (call->op() == kNext) {
      const std::shared_ptr<SentPass> pass = find(call->connection());
      if (!pass) throw Error(ErrorCode::kInvalidData, "no pass is open");
      pass->answer(std::move(call));
    } else {
      throw Error(ErrorCode::kInvalidData, concat("unknown operation ", call->op()));
    }
  }

  void open(net::ServerCall& call) {
    PassRequest request;
    try {
      request = read_pass_request(call.payload());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidConfig) throw;
      call.reply(error_bytes(error.code(), error.what()));
      return;
    }
    request.pass.num_threads = options_.threads_for(request.num_ranks);
    if (find(call.connection())) throw Error(ErrorCode::kInvalidData, "a pass is open already");
    log_info("reads rows from {} on for {} with {} threads", request.pass.first_row,
             call.client_name(), request.pass.num_threads);
    auto pass = std::make_shared<SentPass>(std::move(request), call.client_name());
    {
      const MutexLock lock(mutex_);
      passes_.emplace(call.connection(), std::move(pass));
    }
    call.reply({});
  }

  std::shared_ptr<SentPass> find(const void* connection) {
    const MutexLock lock(mutex_);
    const auto found = passes_.find(connection);
    return found == passes_.end() ? nullptr : found->second;
  }

  void end(const void* connection) {
    std::map<const void*, std::shared_ptr<SentPass>>::node_type ended;  // joined without the lock
    const MutexLock lock(mutex_);
    ended = passes_.extract(connection);
  }

  const std::shared_ptr<net::Rendezvous> store_;
  const LoaderServerOptions options_;
  const std::int64_t number_;
  Mutex mutex_;
  // By connection.
  std::map<const void*, std::shared_ptr<SentPass>> passes_ SATRAP_GUARDED_BY(mutex_);
  net::Server server_;  // destroyed first: no handler runs afterwards
};

LoaderServer::LoaderServer(const net::Endpoint& endpoint,
                           std::shared_ptr<net::Rendezvous> store,
                           const LoaderServerOptions& options)
    : impl_(std::make_unique<Impl>(endpoint, std::move(store), options)) {}
LoaderServer::~LoaderServer() = default;
std::int64_t LoaderServer::number() const { return impl_->number(); }
const std::string& LoaderServer::address() const { return impl_->address(); }

}  // namespace satrap::loader
