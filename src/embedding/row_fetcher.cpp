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
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        changed_.notify_all();
      }
    });
  }
}

void RowFetcher::start(Request request) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({std::move(request), State::kWaits});
  changed_.notify_all();
}

void RowFetcher::wait(std::int64_t step) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return error_ || is_stopped_ || entries_.empty() || entries_.front().request.step > step;
  });
  if (error_) std::rethrow_exception(error_);
  if (is_stopped_) throw Error(ErrorCode::kUnavailable, "the fetching of rows was stopped");
}

void RowFetcher::forget(std::int64_t step) noexcept {
  std::unique_lock lock(mutex_);
  const auto find = [&] {
    return std::ranges::find_if(entries_, [&](const Entry& e) { return e.request.step == step; });
  };
  if (const auto entry = find(); entry != entries_.end() && entry->state == State::kWaits) {
    entry->state = State::kDone;
  }
  changed_.wait(lock, [&] {
    const auto entry = find();
    return entry == entries_.end() || entry->state == State::kDone;
  });
}

void RowFetcher::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
}

RowFetcher::Entry* RowFetcher::next() {
  const auto entry =
      std::ranges::find_if(entries_, [](const Entry& e) { return e.state == State::kWaits; });
  return entry == entries_.end() ? nullptr : &*entry;
}

void RowFetcher::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    Entry* entry = nullptr;
    changed_.wait(lock, [&] { return is_stopped_ || error_ || (entry = next()) != nullptr; });
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
