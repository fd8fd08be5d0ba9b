#include "src/embedding/write_back.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::embedding {

void WriteBack::Rows::begin(backend::Device& device, std::int64_t count, std::int64_t row_bytes) {
  row_bytes_ = row_bytes;
  device_ = nullptr;
  keys_.clear();
  if (count * row_bytes <= memory_.bytes()) return;
  memory_ = {};
  const std::int64_t bytes = count * row_bytes;
  memory_ = {device, backend::Place::kPinnedHost, bytes + bytes / 4, "rows to write back"};
}

void WriteBack::Rows::add_key(Key key) { keys_.add(key, count()); }

void WriteBack::Rows::arrive_with(backend::Device& device, backend::StreamRef stream) {
  if (!arrival_) arrival_.emplace(device);
  arrival_->record(stream);
  device_ = &device;
}

void WriteBack::Rows::wait_for_arrival() const {
  if (device_ == nullptr) return;
  device_->use_on_this_thread();
  arrival_->wait_until_reached();
}

WriteBack::WriteBack(table::RowStore& store, std::int64_t max_bytes)
    : store_(store), max_bytes_(max_bytes) {
  threads_.start("write-back", [this] {
    try {
      run();
    } catch (...) {
      end(std::current_exception());
    }
  });
}

std::unique_ptr<WriteBack::Rows> WriteBack::take_free() {
  const MutexLock lock(mutex_);
  if (free_.empty()) return std::make_unique<Rows>();
  std::unique_ptr<Rows> rows = std::move(free_.back());
  free_.pop_back();
  free_bytes_ -= rows->memory_.bytes();
  return rows;
}

void WriteBack::throw_if_over() const {
  if (error_) std::rethrow_exception(error_);
  if (is_stopped_) throw Error(ErrorCode::kUnavailable, "the write-back of rows was stopped");
}

void WriteBack::wait_for_room() {
  const MutexLock lock(mutex_);
  while (!error_ && !is_stopped_ && waiting_bytes_ > max_bytes_) changed_.wait(mutex_);
  throw_if_over();
}

void WriteBack::add(std::unique_ptr<Rows> rows, std::int64_t step, Kind kind) {
  rows->keys_.sort();
  rows->step_ = step;
  rows->kind_ = kind;
  const MutexLock lock(mutex_);
  if (kind == Kind::kEvicted) waiting_bytes_ += rows->bytes();
  items_.push_back({std::move(rows), {}});
  changed_.notify_all();
}

void WriteBack::add_action(std::function<void()> action) {
  const MutexLock lock(mutex_);
  if (error_ || is_stopped_) return;
  items_.push_back({nullptr, std::move(action)});
  changed_.notify_all();
}

void WriteBack::find(std::span<const Key> keys,
                     std::span<std::byte* const> places,
                     std::vector<bool>& found) {
  found.assign(keys.size(), false);
  const MutexLock lock(mutex_);
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    if (item->rows == nullptr) continue;
    const Rows& rows = *item->rows;
    bool has_arrived = false;
    std::size_t place = 0;
    const auto end = static_cast<std::size_t>(rows.count());
    for (std::size_t i = 0; i < keys.size() && place < end; ++i) {
      place = rows.keys_.find(keys[i], place);
      if (place == end || rows.keys_.key(place) != keys[i] || found[i]) continue;
      if (!has_arrived) rows.wait_for_arrival();  // with the lock: it takes as long as a copy
      has_arrived = true;
      std::memcpy(places[i], rows.row(place), static_cast<std::size_t>(rows.row_bytes_));
      found[i] = true;
    }
  }
}

void WriteBack::throw_if_failed() const {
  const MutexLock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void WriteBack::wait_until_empty() {
  const MutexLock lock(mutex_);
  while (!error_ && !is_stopped_ && !items_.empty()) changed_.wait(mutex_);
  throw_if_over();
}

std::int64_t WriteBack::bytes_put() const {
  const MutexLock lock(mutex_);
  return bytes_put_;
}

std::int64_t WriteBack::rows_put() const {
  const MutexLock lock(mutex_);
  return rows_put_;
}

void WriteBack::stop() { end(nullptr); }

/// Rows stay, because the store does not have them; whoever waits for an action must not wait on.
void WriteBack::end(const std::exception_ptr& error) {
  std::vector<std::function<void()>> actions;  // destroyed without the lock
  const MutexLock lock(mutex_);
  is_stopped_ = is_stopped_ || !error;
  if (error) error_ = error;
  for (Item& item : items_) actions.push_back(std::exchange(item.action, {}));
  changed_.notify_all();
}

void WriteBack::run() {
  MutexLock lock(mutex_);
  while (true) {
    while (!is_stopped_ && items_.empty()) changed_.wait(mutex_);
    if (is_stopped_) return;
    if (items_.front().rows == nullptr) {
      const std::function<void()> action = std::move(items_.front().action);
      lock.unlock();
      action();
      lock.lock();
      items_.pop_front();
    } else {
      std::int64_t step = 0;
      const std::size_t count = take_newest(step);
      lock.unlock();
      const std::int64_t num_rows = put(step);
      lock.lock();
      rows_put_ += num_rows;
      auto not_kept = release_first(count);
      changed_.notify_all();
      lock.unlock();  // pinned memory takes long to free
      not_kept.clear();
      lock.lock();
    }
    changed_.notify_all();
  }
}

/// Rows that wait together are put together, so that a store that takes long to answer keeps up.
/// Lists them in taken_ and returns the number of items; they stay at the front, where find() sees
/// them.
std::size_t WriteBack::take_newest(std::int64_t& step) {
  constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20;
  std::size_t count = 0;
  std::int64_t bytes = 0;
  for (; count < items_.size() && items_[count].rows != nullptr; ++count) {
    const Rows& rows = *items_[count].rows;
    bytes += rows.bytes();
    if (count > 0 && bytes > kMaxBytes) break;
    step = std::max(step, rows.step_);
  }
  taken_rows_.clear();
  taken_.clear();
  sources_.clear();
  for (std::size_t item = count; item-- > 0;) {
    const Rows& rows = *items_[item].rows;
    taken_rows_.push_back(&rows);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows.count()); ++i) {
      taken_.add(rows.keys_.key(i), std::ssize(sources_));
      sources_.push_back(rows.row(i));
    }
  }
  return count;
}

/// The store has them.
std::vector<std::unique_ptr<WriteBack::Rows>> WriteBack::release_first(std::size_t count) {
  std::vector<std::unique_ptr<Rows>> not_kept;
  for (; count > 0; --count) {
    std::unique_ptr<Rows> rows = std::move(items_.front().rows);
    items_.pop_front();
    bytes_put_ += rows->bytes();
    if (rows->kind_ == Kind::kEvicted) waiting_bytes_ -= rows->bytes();
    // After a save there is memory for the whole cache: not all of it is kept.
    if (free_bytes_ + rows->memory_.bytes() > max_bytes_) {
      not_kept.push_back(std::move(rows));
      continue;
    }
    free_bytes_ += rows->memory_.bytes();
    free_.push_back(std::move(rows));
  }
  return not_kept;
}

std::int64_t WriteBack::put(std::int64_t step) {
  for (const Rows* rows : taken_rows_) rows->wait_for_arrival();
  taken_.sort();
  keys_.clear();
  rows_.clear();
  for (std::size_t i = 0; i < static_cast<std::size_t>(taken_.size()); ++i) {
    if (!keys_.empty() && keys_.back() == taken_.key(i)) continue;
    keys_.push_back(taken_.key(i));
    rows_.push_back(sources_[taken_.number(i)]);
  }
  store_.put(std::max<std::int64_t>(1, step), keys_, rows_);
  return std::ssize(keys_);
}

}  // namespace satrap::embedding
