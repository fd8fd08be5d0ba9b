#include "src/data/files/store_retry.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/text.h"
#include "src/data/files/store_libraries.h"

namespace satrap::data {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{100}, kLongestPause{5000}, kNap{50};
/// How long a request is tried again, and how long one may make no progress.
constexpr const char* kTimeoutName = "SATRAP_REMOTE_TIMEOUT";
constexpr const char* kStallName = "SATRAP_REMOTE_STALL";
constexpr double kDefaultTimeoutS = 60.0, kDefaultStallS = 15.0, kLeastStallS = 1.0;

/// A duration in the environment; `otherwise` if there is none.
double seconds_of(const char* name, double otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  try {
    return parse_duration(text);
  } catch (const Error& error) {
    throw Error(error.code(), concat("the environment's ", name, ": ", error.what()));
  }
}

double stall_seconds() { return std::max(kLeastStallS, seconds_of(kStallName, kDefaultStallS)); }

std::chrono::steady_clock::duration as_duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

StoreRetry::StoreRetry(const char* verb, std::string url, const IsCancelled& is_cancelled)
    : verb_(verb),
      url_(std::move(url)),
      is_cancelled_(is_cancelled),
      timeout_s_(seconds_of(kTimeoutName, kDefaultTimeoutS)),
      try_s_(std::max(timeout_s_ / 2, stall_seconds())),
      is_over_([this] {
        is_late_ = is_late_ || Clock::now() >= end_of_try_;
        return is_late_ || (is_cancelled_ && is_cancelled_());
      }),
      pause_(kFirstPause) {}

const IsCancelled& StoreRetry::begin_try() {
  is_late_ = false;
  end_of_try_ = Clock::now() + as_duration(try_s_);
  return is_over_;
}

void StoreRetry::refuse(const StoreFailure& failure) const {
  const bool is_read = std::string_view(verb_) == "read";
  if (is_read && failure.kind() == StoreFailure::Kind::kMissing) {
    throw Error(ErrorCode::kIo, concat("data file '", url_, "': ", failure.what()));
  }
  if (failure.kind() == StoreFailure::Kind::kChanged) {
    throw Error(ErrorCode::kIo,
                concat("data file '", url_, "' has changed while it was read (", failure.what(),
                       "): leave the files of a job as they are, and start again"));
  }
  throw Error(ErrorCode::kIo, concat("cannot ", verb_, " '", url_, "': ", failure.what()));
}

/// Pauses double, less a part that differs between files, so that not all come back at once.
void StoreRetry::wait_after(const StoreFailure& failure) {
  if (failure.kind() != StoreFailure::Kind::kMayPass) refuse(failure);
  ++tries_;
  const auto now = Clock::now();
  if (!deadline_) {
    deadline_ = std::max(began_ + as_duration(timeout_s_), now + as_duration(timeout_s_ / 2));
  }
  const auto share = static_cast<std::int64_t>(hash64(hash_bytes(url_), tries_) % 50);
  const auto next = now + pause_ * (100 - share) / 100;
  const auto has_gone = [&] { return is_cancelled_ && is_cancelled_(); };
  if (next >= *deadline_ || has_gone()) {
    const std::string limit =
        is_late_ ? concat(" (a try may last ", format_duration(try_s_), ")") : "";
    throw Error(ErrorCode::kIo,
                concat("cannot ", verb_, " '", url_, "': ", failure.what(), limit, "; tried ",
                       tries_, tries_ == 1 ? " time" : " times", " within ", kTimeoutName, " = ",
                       format_duration(timeout_s_)));
  }
  while (Clock::now() < next && !has_gone()) {
    std::this_thread::sleep_for(std::min<Clock::duration>(kNap, next - Clock::now()));
  }
  pause_ = std::min(2 * pause_, kLongestPause);
}

ObjectStore& store_of(const RemoteUrl& url, const IsCancelled& is_cancelled, const char* verb) {
  const double stall_s = stall_seconds();
  return tried_again(
      url.with_path(url.path), is_cancelled,
      [&](const IsCancelled&) -> ObjectStore& {
        return store_library(url.scheme).connect(url.authority, stall_s);
      },
      verb);
}

}  // namespace satrap::data
