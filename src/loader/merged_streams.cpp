#include "src/loader/merged_streams.h"

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

/// A turn has whole turns of every rank, so that each of them has as many rows in it.
std::int64_t turn_of_loaders(const data::RowSplit& split, std::int64_t rows_per_turn) {
  if (split.world_size == 1) return rows_per_turn;
  const std::int64_t round = split.world_size * split.rows_per_turn;
  return (split.world_size * rows_per_turn + round - 1) / round * round;
}

}  // namespace

MergedStreams::MergedStreams(RankSide& side, PassRequest request)
    : side_(side),
      request_(std::move(request)),
      schema_(data::resolve_schema(request_.config)),
      rows_per_turn_(turn_of_loaders(request_.pass.split, side.options.rows_per_turn)),
      next_row_(request_.pass.first_row) {}

bool MergedStreams::next(data::RowDelivery& delivery) {
  for (;;) {
    if (!streams_.empty() && has_newcomer()) drop_streams();
    if (streams_.empty() && !open_streams()) return false;
    try {
      take(delivery);
      return true;
    } catch (const net::NetError& error) {
      if (is_closed_) return false;
      lose(asked_->loader(), error.what());
      drop_streams();
    }
  }
}

void MergedStreams::take(data::RowDelivery& delivery) {
  const auto count = static_cast<std::int64_t>(streams_.size());
  for (std::int64_t num_ended = 0;;) {
    const std::int64_t turn = count == 1 ? 0 : next_row_ / rows_per_turn_;
    const std::int64_t turn_end = count == 1 ? INT64_MAX : (turn + 1) * rows_per_turn_;
    ReceivedStream& stream = *streams_[static_cast<std::size_t>(turn % count)];
    asked_ = &stream;
    const data::RowDelivery& front = stream.front();
    if (front.is_end) {
      if (++num_ended == count) {  // one after the other: no stream has more rows
        delivery = front;
        return;
      }
      next_row_ = turn_end;
      continue;
    }
    const std::int64_t turn_of_front = stream.turn_of(front.end_row);
    if (turn_of_front > turn) {
      num_ended = 0;
      next_row_ = turn_end;
      continue;
    }
    if (turn_of_front < turn || front.end_row <= next_row_) {
      throw net::NetError(net::NetFailure::kProtocol,
                          concat("rows before ", front.end_row, " came after row ", next_row_));
    }
    stream.pop(delivery);
    next_row_ = std::min(delivery.end_row, turn_end);
    return;
  }
}

/// False: nobody waits for rows any more.
bool MergedStreams::open_streams() {
  const net::Deadline deadline = net::Deadline::after_ms(side_.options.timeout_ms);
  std::int64_t pause_ms = kFirstPauseMs;
  while (!is_stopped()) {
    if (try_loaders()) return true;
    if (deadline.has_passed()) {
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

bool MergedStreams::try_loaders() {
  looked_at_ = LoaderList::Clock::now();
  try {
    const std::vector<LoaderEntry> loaders = side_.list.find(looked_at_);
    if (loaders.empty()) side_.list.forget_losses();
    return !loaders.empty() && open(reach(loaders));
  } catch (const Error& error) {  // the store
    if (error.code() != ErrorCode::kIo) throw;
    last_failure_ = error.what();
    return false;
  }
}

/// Connects to several at a time, so that those that do not answer cost little. Returns those that
/// do, in the order of `loaders`.
std::vector<std::unique_ptr<ReceivedStream>> MergedStreams::reach(
    const std::vector<LoaderEntry>& loaders) {
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

bool MergedStreams::open(std::vector<std::unique_ptr<ReceivedStream>> streams) {
  {
    const std::lock_guard lock(mutex_);
    streams_ = std::move(streams);
  }
  PassRequest request = request_;
  request.pass.first_row = next_row_;
  request.pass.split.stream = {.count = static_cast<std::int64_t>(streams_.size()),
                               .rows_per_turn = rows_per_turn_};
  for (const std::unique_ptr<ReceivedStream>& stream : streams_) {
    if (is_closed_) break;  // close() has not seen them all
    try {
      stream->open(request);
    } catch (const net::NetError& error) {  // also what it could not do, as another one may
      lose(stream->loader(), error.what());
      drop_streams();
      return false;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidConfig) throw;
      throw Error(error.code(),
                  concat(error.what(), "; loaders must be of the version of the ranks"));
    }
    ++request.pass.split.stream.number;
  }
  if (is_closed_) drop_streams();
  return !streams_.empty();
}

/// Whether a loader that is not used can be reached.
bool MergedStreams::has_newcomer() {
  const auto now = LoaderList::Clock::now();
  if (now - looked_at_ < std::chrono::milliseconds(side_.options.look_every_ms)) return false;
  looked_at_ = now;
  try {
    std::vector<LoaderEntry> others = side_.list.find(now);
    std::erase_if(others, [&](const LoaderEntry& other) {
      return std::ranges::any_of(
          streams_, [&](const auto& used) { return used->loader().number == other.number; });
    });
    return !others.empty() && !reach(others).empty();
  } catch (const Error& error) {
    log_debug("loaders that have come are not found: {}", error.what());
    return false;
  }
}

void MergedStreams::lose(const LoaderEntry& loader, const std::string& why) {
  const std::string name = concat("loader ", loader.number, " at ", loader.address);
  last_failure_ = concat(name, ": ", why);
  side_.list.lose(loader.number, LoaderList::Clock::now());
  if (!is_closed_) log_warning("{} is not used from row {} on: {}", name, next_row_, why);
}

void MergedStreams::drop_streams() {
  std::vector<std::unique_ptr<ReceivedStream>> dropped;  // whose ends are waited for unlocked
  const std::lock_guard lock(mutex_);
  dropped.swap(streams_);
}

bool MergedStreams::is_stopped() const {
  return is_closed_ || (side_.options.stop != nullptr && side_.options.stop->load());
}

void MergedStreams::pause(std::int64_t milliseconds) {
  std::unique_lock lock(mutex_);
  closed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return is_stopped(); });
}

void MergedStreams::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  closed_.notify_all();
  for (const auto& stream : streams_) stream->close();
}

}  // namespace satrap::loader
