#include "src/loader/loader_streams.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/text.h"
#include "satrap/core/thread_group.h"
#include "satrap/net/net_error.h"

namespace satrap::loader {
namespace {

constexpr std::size_t kMaxConnecting = 16;  // to so many loaders at a time
constexpr std::int64_t kFirstPauseMs = 10;
constexpr std::int64_t kMaxPauseMs = 1000;

}  // namespace

LoaderStreams::LoaderStreams(RankSide& side, const data::Schema& schema, std::int64_t max_streams)
    : side_(side), schema_(schema), max_streams_(max_streams) {}

bool LoaderStreams::open(const Requests& requests) {
  // One that is reached and sends nonsense, again and again, is as none.
  bool may_try = !deadline_;
  if (may_try) deadline_ = net::Deadline::after_ms(side_.options.timeout_ms);
  std::int64_t pause_ms = kFirstPauseMs;
  while (!is_stopped()) {
    may_try = may_try || !deadline_->has_passed();
    if (may_try && try_loaders(requests)) return true;
    may_try = false;
    if (deadline_->has_passed()) {
      throw Error(ErrorCode::kIo,
                  concat("data.loaders: no loader could be used for data.loaders.timeout = ",
                         format_duration(static_cast<double>(side_.options.timeout_ms) / 1e3),
                         last_failure_.empty() ? "" : concat("; the last failure: ", last_failure_),
                         "; start `satrap loader` with the SATRAP_STORE and SATRAP_TOKEN of this "
                         "process, or leave data.loaders.store empty"));
    }
    pause(pause_ms);
    pause_ms = std::min(2 * pause_ms, kMaxPauseMs);
  }
  return false;
}

bool LoaderStreams::try_loaders(const Requests& requests) {
  looked_at_ = LoaderList::Clock::now();
  try {
    std::vector<LoaderEntry> loaders = side_.list.find(looked_at_);
    if (loaders.empty()) side_.list.forget_losses();
    return !loaders.empty() && ask(reach(std::move(loaders)), requests);
  } catch (const Error& error) {  // the store
    if (error.code() != ErrorCode::kIo) throw;
    last_failure_ = error.what();
    return false;
  }
}

/// Connects to several at a time, so that those that do not answer cost little. Returns those that
/// do, in the order of `loaders`.
std::vector<std::unique_ptr<ReceivedStream>> LoaderStreams::reach(
    std::vector<LoaderEntry> loaders) {
  std::vector<std::unique_ptr<ReceivedStream>> streams(loaders.size());
  std::vector<std::string> failures(loaders.size());
  std::atomic<std::size_t> next{0};
  const auto connect = [&] {
    for (std::size_t i = next++; i < loaders.size(); i = next++) {
      try {
        const auto deadline = net::Deadline::after_ms(side_.options.connect_ms).unless(is_closed_);
        streams[i] = std::make_unique<ReceivedStream>(side_.endpoint, loaders[i], schema_,
                                                      side_.name, deadline);
      } catch (const std::exception& error) {
        failures[i] = error.what();
      }
    }
  };
  {
    ThreadGroup threads([&] { next = loaders.size(); });
    for (std::size_t i = 1; i < std::min(loaders.size(), kMaxConnecting); ++i) {
      threads.start("loader-connect", connect);
    }
    connect();
  }
  for (std::size_t i = 0; i < loaders.size(); ++i) {
    if (!streams[i]) lose(loaders[i], failures[i]);
  }
  std::erase(streams, nullptr);
  return streams;
}

bool LoaderStreams::ask(std::vector<std::unique_ptr<ReceivedStream>> streams,
                        const Requests& requests) {
  if (const auto count = std::ssize(streams); count > max_streams_) {
    // Other ranks have the loaders after those of this one.
    const std::int64_t first = side_.options.rank % count * max_streams_ % count;
    std::ranges::rotate(streams, streams.begin() + first);
    streams.resize(static_cast<std::size_t>(max_streams_));
  }
  {
    const MutexLock lock(mutex_);
    streams_ = std::move(streams);
  }
  for (std::int64_t number = 0; number < count(); ++number) {
    if (is_closed_) break;  // close() has not seen them all
    ReceivedStream& stream = (*this)[number];
    try {
      stream.open(requests(number, count()));
    } catch (const net::NetError& error) {  // also what it could not do, as another one may
      lose(stream.loader(), error.what());
      drop();
      return false;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidConfig) throw;
      throw Error(error.code(),
                  concat(error.what(), "; loaders must be of the version of the ranks"));
    }
  }
  if (is_closed_) drop();
  return is_open();
}

bool LoaderStreams::has_newcomer() {
  const auto now = LoaderList::Clock::now();
  if (count() >= max_streams_ ||
      now - looked_at_ < std::chrono::milliseconds(side_.options.look_every_ms)) {
    return false;
  }
  looked_at_ = now;
  try {
    std::vector<LoaderEntry> others = side_.list.find(now);
    std::erase_if(others, [&](const LoaderEntry& other) {
      return std::ranges::any_of(
          streams_, [&](const auto& used) { return used->loader().number == other.number; });
    });
    return !others.empty() && !reach(std::move(others)).empty();
  } catch (const Error& error) {
    log_debug("loaders that have come are not found: {}", error.what());
    return false;
  }
}

void LoaderStreams::lose(const LoaderEntry& loader, const std::string& why) {
  const std::string name = concat("loader ", loader.number, " at ", loader.address);
  last_failure_ = concat(name, ": ", why);
  side_.list.lose(loader.number, LoaderList::Clock::now());
  if (!is_closed_) log_warning("{} is not used: {}", name, why);
}

void LoaderStreams::drop() {
  std::vector<std::unique_ptr<ReceivedStream>> dropped;  // whose ends are waited for unlocked
  const MutexLock lock(mutex_);
  dropped.swap(streams_);
}

bool LoaderStreams::is_stopped() const {
  return is_closed_ || (side_.options.stop != nullptr && side_.options.stop->load());
}

void LoaderStreams::pause(std::int64_t milliseconds) {
  const MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (!is_stopped() && closed_.wait_until(mutex_, until)) continue;
}

void LoaderStreams::close() {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  closed_.notify_all();
  for (const auto& stream : streams_) stream->close();
}

}  // namespace satrap::loader
