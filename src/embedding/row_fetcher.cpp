#include "src/embedding/row_fetcher.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::embedding {

RowFetcher::RowFetcher(table::RowStore& store, std::int64_t num_threads) : store_(store) {
  for (std::int64_t i = 0; i < num_threads; ++i) {
    threads_.start(concat("fetch-", i), [this] {
      try {
        run();
      } catch (...) {
        const MutexLock lock(mutex_);
        if (!error_) error_ = std::current_exception();
        changed_.notify_all();
      }
    });
  }
}

void RowFetcher::start(Request request) {
  const MutexLock lock(mutex_);
  entries_.push_back({std::move(request), State::kWaits});
  changed_.notify_all();
}

void RowFetcher::wait(std::int64_t step) {
  const MutexLock lock(mutex_);
  while (!error_ && !is_stopped_ && !entries_.empty() && entries_.front().request.step <= step) {
    changed_.wait(mutex_);
  }
  if (error_) std::rethrow_exception(error_);
  if (is_stopped_) throw Error(ErrorCode::kUnavailable, "the fetching of rows was stopped");
}

void RowFetcher::forget(std::int64_t step) noexcept {
  const MutexLock lock(mutex_);
  const auto find = [&]() SATRAP_REQUIRES(mutex_) {
    return std::ranges::find_if(entries_, [&](const Entry& e) { return e.request.step == step; });
  };
  auto entry = find();
  if (entry != entries_.end() && entry->state == State::kWaits) entry->state = State::kDone;
  for (; entry != entries_.end() && entry->state != State::kDone; entry = find()) {
    changed_.wait(mutex_);
  }
}

void RowFetcher::stop() {
  const MutexLock lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
}

RowFetcher::Entry* RowFetcher::next() {
  const auto entry =
      std::ranges::find_if(entries_, [](const Entry& e) { return e.state == State::kWaits; });
  return entry == entries_.end() ? nullptr : &*entry;
}

void RowFetcher::run() {
  MutexLock lock(mutex_);
  while (true) {
    Entry* entry = next();
    for (; !is_stopped_ && !error_ && entry == nullptr; entry = next()) changed_.wait(mutex_);
    if (is_stopped_ || error_) return;
    entry->state = State::kRuns;
    const Request& request = entry->request;  // a deque's elements stay where they are
    lock.unlock();
    std::exception_ptr error;
    try {
      if (!request.keys.empty()) {
        if (request.may_stay) {
          store_.locate(request.keys, request.rows);
        } else {
          store_.fetch(request.keys, request.rows);
        }
      }
      request.arrive();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    entry->state = State::kDone;
    if (error && !error_) error_ = error;
    // After an error the first entry stays: whoever waits for it must not go on.
    while (!error_ && !entries_.empty() && entries_.front().state == State::kDone) {
      entries_.pop_front();
    }
    changed_.notify_all();
  }
}

}  // namespace satrap::embedding
