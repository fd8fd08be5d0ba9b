#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "satrap/backend/cache.h"
#include "satrap/backend/recordings.h"
#include "satrap/backend/stream.h"
#include "satrap/backend/window.h"
#include "satrap/embedding/table_groups.h"
#include "src/embedding/device_array.h"
#include "src/embedding/group_part.h"
#include "src/embedding/overflow_rows.h"
#include "src/embedding/plan_room.h"
#include "src/embedding/resolve_lists.h"
#include "src/embedding/write_back.h"

namespace satrap::embedding {

/// The rows of a table group that are in a device's memory. A batch's keys are given slots, which
/// hold their rows until the batch is completed: its updates are done. Rows whose sets are full of
/// such rows are kept in overflow rows; all batches that need one meanwhile share it.
///
/// Batches are numbered from 1. The owner sees to it that resolve() and save() do not run at the
/// same time; make_plan() and scatter() may run beside them, for other batches.
class GroupCache {
 public:
  /// `window`: the batches that it looks ahead at; without, if the policy is another. `evictions`:
  /// for the copies of rows that make room; `stream`: for all other work but scatter(). They
  /// outlive it, as the device and the group do.
  GroupCache(backend::Device& device,
             const TableGroup& group,
             const backend::CacheSize& size,
             backend::EvictionPolicy policy,
             const std::optional<backend::WindowSize>& window,
             const backend::Stream& stream,
             const backend::Stream& evictions);

  /// Queues the plan of a part whose batch has been filled and uploaded.
  void make_plan(GroupPart& part);

  /// Queues the look at a part, filled and uploaded, of a batch whose turn to be planned comes
  /// later. Batches are looked at in order, each once.
  void look_at(GroupPart& part, std::uint32_t batch);

  /// Gives each key of the planned part a slot: sets the plan's slots and lists the rows to be
  /// fetched. Rows that make room for them go to `write_back` if they have changed: their updates
  /// precede `completed`; they are copied from their slots later. Blocks until the device has given
  /// slots. False if there was no slot for some: call it again once more batches are completed, and
  /// the part's room is made.
  struct Numbers {
    std::uint32_t batch = 0, completed = 0;
    std::int64_t step = 0;  // the last one whose updates are applied
  };
  bool resolve(GroupPart& part, const Numbers& numbers, WriteBack& write_back);

  /// Queues the copy of the fetched rows, from the staging of the part, into their slots.
  /// The caller has made the stream wait for the part's room.
  void scatter(GroupPart& part, backend::StreamRef stream) const;

  /// The same, of rows that the device reads where they are.
  void load(GroupPart& part,
            std::span<const std::byte* const> rows,  // [n]
            backend::StreamRef stream) const;

  /// Copies all changed rows to `write_back`; they stay in the cache, unchanged. While no update
  /// runs. Blocks until the device has done it.
  void save(const Numbers& numbers, WriteBack& write_back);

  const TableGroup& group() const { return group_; }
  const backend::CacheView& view() const { return cache_.view(); }
  std::int64_t bytes() const {
    return view().size.bytes(group_.layout) + (window_ ? window_->view().size.bytes() : 0);
  }
  std::int64_t hits() const { return hits_; }
  std::int64_t misses() const { return misses_; }

  /// Whether it matters which rows leave: as many have come as it holds, and then some batch missed
  /// more than a sixteenth of its rows.
  bool is_crowded() const { return is_crowded_; }

 private:
  void release_overflow(GroupPart& part, const Numbers& numbers, WriteBack& write_back);
  std::unique_ptr<WriteBack::Rows> gather_overflow(std::span<const OverflowRows::Changed> changed,
                                                   QueuedArray<std::int32_t>& list,
                                                   backend::StreamRef stream,
                                                   WriteBack& write_back);
  bool add_misses(GroupPart& part);
  void note_crowding();
  std::span<const Key> list(const Key* keys, std::int64_t count);
  static const std::int32_t* queue_slots(GroupPart& part, backend::StreamRef stream);
  void evict(GroupPart& part, std::int64_t step, WriteBack& write_back);

  backend::Device& device_;
  const TableGroup& group_;
  const backend::Stream& stream_;
  const backend::Stream& evictions_;
  backend::Recordings recordings_;  // of plans: batches of one size have the same ones again
  const backend::Cache cache_;
  const backend::SlotListBuffer listed_;
  std::optional<backend::Window> window_;
  std::uint32_t last_looked_at_ = 0, last_resolved_ = 0, halving_log2_ = 0;
  PlanRoom plan_room_;
  std::int64_t hits_ = 0, misses_ = 0;
  bool is_crowded_ = false;
  ResolveLists found_;
  OverflowRows overflow_;

  // Kept from use to use.
  std::vector<Key> keys_;
  std::vector<std::int32_t> slots_;
  QueuedArray<std::int32_t> saved_slots_;
};

}  // namespace satrap::embedding
