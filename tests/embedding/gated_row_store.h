#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/table/row_store.h"

namespace satrap::embedding {

/// A store of rows of 16 bytes, their key and a value: 0 until one is put.
class SmallRowStore final : public table::RowStore {
 public:
  static constexpr std::int64_t kRowBytes = 16;
  static void write(Key key, std::int64_t value, std::byte* row) {
    std::memcpy(row, &key, sizeof(key));
    std::memcpy(row + 8, &value, sizeof(value));
  }
  static std::int64_t value_of(const std::byte* row) {
    std::int64_t value = 0;
    std::memcpy(&value, row + 8, sizeof(value));
    return value;
  }

  void fetch(std::span<const Key> keys, std::span<std::byte* const> rows) override {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < keys.size(); ++i) write(keys[i], values_[keys[i]], rows[i]);
  }
  void put(std::int64_t,
           std::span<const Key> keys,
           std::span<const std::byte* const> rows) override {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < keys.size(); ++i) values_[keys[i]] = value_of(rows[i]);
  }
  std::int64_t value(Key key) {
    const std::lock_guard lock(mutex_);
    return values_[key];
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::int64_t> values_;
};

enum class StoreCall : std::uint8_t { kFetch, kPut };

/// A store that answers as late, in the order and with the errors that a test decides, and records
/// what it is asked. Calls of each kind have numbers from 1. The rows of a fetch with an even
/// number are read when it is let go, of an odd one when it comes. Waits have a deadline.
class GatedRowStore final : public table::RowStore {
 public:
  struct Record {
    std::vector<Key> keys;
    std::int64_t step;  // of a put
    bool operator==(const Record&) const = default;
  };

  explicit GatedRowStore(table::RowStore& store) : store_(store) {}

  void fetch(std::span<const Key> keys, std::span<std::byte* const> rows) override {
    fetch_by(keys, [&] { store_.fetch(keys, rows); });
  }
  void locate(std::span<const Key> keys, std::span<std::byte*> rows) override {
    fetch_by(keys, [&] { store_.locate(keys, rows); });
  }
  void put(std::int64_t step,
           std::span<const Key> keys,
           std::span<const std::byte* const> rows) override {
    const std::int64_t number = enter(StoreCall::kPut, {{keys.begin(), keys.end()}, step});
    if (!std::ranges::is_sorted(keys, std::less_equal<>())) throw std::logic_error("put: keys");
    wait_at_gate(StoreCall::kPut, number);
    store_.put(step, keys, rows);
    leave(StoreCall::kPut);
  }

  /// Calls of this kind wait from now on.
  void close(StoreCall call) {
    const std::lock_guard lock(mutex_);
    of(call).is_closed = true;
  }
  /// Lets go all calls of this kind that wait, and those to come.
  void open(StoreCall call) {
    const std::lock_guard lock(mutex_);
    of(call).is_closed = false;
    of(call).waiting.clear();
    changed_.notify_all();
  }
  void open_all() {
    open(StoreCall::kFetch);
    open(StoreCall::kPut);
  }
  /// Lets one call go, which waits, and blocks until it has ended.
  void let(StoreCall call, std::int64_t number) {
    std::unique_lock lock(mutex_);
    wait(lock, concat("call ", number, " at the gate"),
         [&] { return of(call).waiting.contains(number); });
    const std::int64_t ended = of(call).ended;
    of(call).waiting.erase(number);
    changed_.notify_all();
    wait(lock, "the end of a call", [&] { return of(call).ended > ended; });
  }
  /// Lets all calls go that wait, one after the other in random order.
  void let_all(StoreCall call, std::mt19937_64& random) {
    while (true) {
      std::int64_t number = 0;
      {
        const std::lock_guard lock(mutex_);
        const std::set<std::int64_t>& waiting = of(call).waiting;
        if (waiting.empty()) return;
        number =
            *std::next(waiting.begin(), static_cast<std::ptrdiff_t>(random() % waiting.size()));
      }
      let(call, number);
    }
  }
  void wait_for_waiting(StoreCall call, std::size_t count) {
    std::unique_lock lock(mutex_);
    wait(lock, concat(count, " calls at the gate"),
         [&] { return of(call).waiting.size() >= count; });
  }
  /// Calls of this kind that have ended, well or not.
  void wait_for_ended(StoreCall call, std::int64_t count) {
    std::unique_lock lock(mutex_);
    wait(lock, concat(count, " ended calls"), [&] { return of(call).ended >= count; });
  }

  /// The call with this number fails once it has passed the gate.
  void fail(StoreCall call, std::int64_t number) {
    const std::lock_guard lock(mutex_);
    of(call).failing = number;
  }

  std::vector<Record> records(StoreCall call) {
    const std::lock_guard lock(mutex_);
    return of(call).records;
  }
  std::int64_t num_calls(StoreCall call) { return std::ssize(records(call)); }
  std::size_t num_waiting(StoreCall call) {
    const std::lock_guard lock(mutex_);
    return of(call).waiting.size();
  }

 private:
  struct OfCall {
    bool is_closed = false;
    std::set<std::int64_t> waiting;
    std::vector<Record> records;
    std::int64_t ended = 0;
    std::optional<std::int64_t> failing;
  };
  OfCall& of(StoreCall call) { return calls_[static_cast<std::size_t>(call)]; }

  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, const std::string& what, Condition condition) {
    constexpr std::chrono::seconds kDeadline(60);
    if (!changed_.wait_for(lock, kDeadline, condition)) throw std::runtime_error("no " + what);
  }

  template <class Fetch>
  void fetch_by(std::span<const Key> keys, Fetch fetch) {
    const std::int64_t number = enter(StoreCall::kFetch, {{keys.begin(), keys.end()}, 0});
    if (number % 2 == 1) fetch();
    wait_at_gate(StoreCall::kFetch, number);
    if (number % 2 == 0) fetch();
    leave(StoreCall::kFetch);
  }

  std::int64_t enter(StoreCall call, Record record) {
    const std::lock_guard lock(mutex_);
    of(call).records.push_back(std::move(record));
    if (of(call).is_closed) of(call).waiting.insert(std::ssize(of(call).records));
    changed_.notify_all();
    return std::ssize(of(call).records);
  }
  void wait_at_gate(StoreCall call, std::int64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !of(call).waiting.contains(number); });
    if (of(call).failing != number) return;
    ++of(call).ended;
    changed_.notify_all();
    throw Error(ErrorCode::kUnavailable, concat("call ", number, " fails, as it was told to"));
  }
  void leave(StoreCall call) {
    const std::lock_guard lock(mutex_);
    ++of(call).ended;
    changed_.notify_all();
  }

  table::RowStore& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<OfCall, 2> calls_;
};

}  // namespace satrap::embedding
