#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"
#include "satrap/core/mutex.h"
#include "satrap/core/thread_group.h"
#include "satrap/table/row_store.h"
#include "src/embedding/numbered_keys.h"

namespace satrap::embedding {

/// Changed rows on their way from a cache to its store. A thread of its own puts them there in the
/// order in which they were added; until a row is there, find() answers for it. Thread-safe.
class WriteBack {
 public:
  enum class Kind : std::uint8_t {
    kEvicted,  // waits for room
    kSaved,    // bounded by the size of the cache: nobody waits for them
  };

  /// Rows of one layout. Reused, with its memory.
  class Rows {
   public:
    /// Room for `count` rows in pinned memory; their keys are added with add_key().
    void begin(backend::Device& device, std::int64_t count, std::int64_t row_bytes);
    void add_key(Key key);  // of the next row
    /// They arrive once the stream has done what has been queued on it.
    void arrive_with(backend::Device& device, backend::StreamRef stream);
    std::byte* data() { return memory_.data(); }
    std::int64_t count() const { return keys_.size(); }

   private:
    friend class WriteBack;
    const std::byte* row(std::size_t place) const {
      return memory_.data() + static_cast<std::int64_t>(keys_.number(place)) * row_bytes_;
    }
    std::int64_t bytes() const { return count() * row_bytes_; }
    void wait_for_arrival() const;

    Kind kind_ = Kind::kEvicted;
    std::int64_t row_bytes_ = 0, step_ = 0;
    NumberedKeys keys_;                        // sorted once added
    const backend::Device* device_ = nullptr;  // of the copy that they arrive by; or none
    std::optional<backend::Event> arrival_;
    backend::Memory memory_;
  };

  /// `store` outlives it. `max_bytes`: of evicted rows that wait.
  WriteBack(table::RowStore& store, std::int64_t max_bytes);

  std::unique_ptr<Rows> take_free();

  /// Blocks while more than max_bytes of evicted rows wait. Rethrows the error of the store, or of
  /// rows that have not arrived, as do all functions that wait; throws Error(kUnavailable) once
  /// stopped.
  void wait_for_room();

  /// `step`: the last one whose updates the rows may have. Rows of a key that are added later are
  /// newer. Never blocks.
  void add(std::unique_ptr<Rows> rows, std::int64_t step, Kind kind = Kind::kEvicted);

  /// Runs `action` on the thread of this object when all that was added before is in the store, and
  /// nothing that is added later. After an error or stop() that never comes: it is destroyed.
  void add_action(std::function<void()> action);

  /// Copies each row that is under way, in its newest version, to its place, and sets found[i].
  /// Blocks until rows that are found have arrived; throws the device's error.
  void find(std::span<const Key> keys,           // [n] ascending
            std::span<std::byte* const> places,  // [n] of [row_bytes] out
            std::vector<bool>& found);           // [n] out

  void throw_if_failed() const;  // the error of the store, or of rows that have not arrived
  void wait_until_empty();       // blocks until all that was added is in the store
  std::int64_t bytes_put() const;
  std::int64_t rows_put() const;

  /// What still waits is dropped. Any thread.
  void stop();

 private:
  struct Item {
    std::unique_ptr<Rows> rows;
    std::function<void()> action;  // if there are no rows
  };
  void run();
  std::size_t take_newest(std::int64_t& step) SATRAP_REQUIRES(mutex_);
  std::vector<std::unique_ptr<Rows>> release_first(std::size_t count) SATRAP_REQUIRES(mutex_);
  std::int64_t put(std::int64_t step);  // what was taken; returns the number of rows
  void throw_if_over() const SATRAP_REQUIRES(mutex_);
  void end(const std::exception_ptr& error);  // nullptr: it is stopped

  table::RowStore& store_;
  const std::int64_t max_bytes_;
  mutable Mutex mutex_;
  CondVar changed_;
  // Oldest first; those at the front may be on their way.
  std::deque<Item> items_ SATRAP_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Rows>> free_ SATRAP_GUARDED_BY(mutex_);
  std::int64_t free_bytes_ SATRAP_GUARDED_BY(mutex_) = 0;
  std::int64_t waiting_bytes_ SATRAP_GUARDED_BY(mutex_) = 0;
  std::int64_t bytes_put_ SATRAP_GUARDED_BY(mutex_) = 0;
  std::int64_t rows_put_ SATRAP_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ SATRAP_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ SATRAP_GUARDED_BY(mutex_);
  // Scratch of the thread, kept from put to put.
  std::vector<const Rows*> taken_rows_;    // newest first
  NumberedKeys taken_;                     // the same order
  std::vector<const std::byte*> sources_;  // by the numbers of taken_
  std::vector<Key> keys_;
  std::vector<const std::byte*> rows_;
  ThreadGroup threads_{[this] { stop(); }};
};

}  // namespace satrap::embedding
