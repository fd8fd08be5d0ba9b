#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "satrap/backend/memory.h"
#include "satrap/backend/operations.h"
#include "satrap/backend/stream.h"
#include "src/embedding/device_array.h"

namespace satrap::embedding {

/// The overflow rows of a cache: which keys have one, from their first to their last batch, and
/// which are free. The planner's thread alone.
class OverflowRows {
 public:
  struct Changed {
    Key key;
    std::int32_t slot;
  };

  /// The device outlives it.
  OverflowRows(backend::Device& device, const backend::CacheSize& size);

  /// Offers free rows and those in use to a resolve that is queued on `stream` next. The stream has
  /// done all earlier ones.
  void give(backend::ResolveArguments& arguments, backend::StreamRef stream);

  /// What that resolve has found: the rows in use, as they were given, and the keys that take free
  /// ones.
  void note_needed(std::span<const backend::OverflowRow> rows, std::uint32_t batch);
  void take(std::span<const Key> keys, std::uint32_t batch);

  /// Frees the rows that no batch after `completed` needs. Those that have changed since they were
  /// listed last are valid until the next call, and their memory until other rows come there.
  std::span<const Changed> release(std::uint32_t completed);

  /// The rows with updates up to `completed` that have not been listed.
  std::span<const Changed> list_changed(std::uint32_t completed);

 private:
  struct Row {
    std::int32_t slot;
    std::uint32_t first, last;  // batches that need it
    std::uint32_t listed = 0;   // the updates of batches up to it are in a list
  };
  void list_if_changed(std::uint64_t tag, Row& row, std::uint32_t completed);
  std::int32_t* free_slots() const { return reinterpret_cast<std::int32_t*>(free_.data()); }

  backend::Device& device_;
  std::map<std::uint64_t, Row> rows_;  // by tag; usually few
  std::vector<Changed> changed_;       // what was listed last

  // The free slots are those from first_free_ on. Where they have changed, the device does not yet
  // have them.
  const std::int64_t num_rows_;
  std::int64_t first_free_ = 0, changed_end_;
  backend::Memory free_, free_on_device_;  // [num_rows] slots; pinned
  std::vector<backend::OverflowRow> shared_;
  QueuedArray<backend::OverflowRow> shared_on_device_;
};

}  // namespace satrap::embedding
