#pragma once

#include <cstdint>
#include <span>

#include "satrap/backend/operations.h"
#include "satrap/backend/stream.h"
#include "src/embedding/device_array.h"

namespace satrap::embedding {

/// What the host reads of a resolve. To wait but once, it asks for about as much as the last one
/// had, beside the counts that say how much there is; the rest, if any, it reads then. One thread
/// at a time.
class ResolveLists {
 public:
  explicit ResolveLists(backend::Device& device);

  /// Blocks until the resolve that was queued last on `stream`, of a batch of `num_ids`, is done.
  void read(const backend::MissView& misses,
            const backend::ResolveArguments& arguments,
            std::int64_t num_ids,
            const backend::Stream& stream);

  // From the last read, valid until the next.
  const backend::ResolveCounts& counts() const { return counts_; }
  std::span<const Key> victims() const { return victims_.first(lengths_.victims); }
  std::span<const Key> missing() const { return missing_.first(lengths_.missing); }
  std::span<const std::int32_t> missing_slots() const { return slots_.first(lengths_.missing); }
  std::span<const backend::OverflowRow> shared() const { return shared_.first(num_shared_); }
  std::span<const Key> overflow() const {  // that have been given a row
    return overflow_.first(lengths_.overflow);
  }

 private:
  struct Lengths {
    std::int64_t victims = 0, missing = 0, overflow = 0;
  };
  void queue(const backend::MissView& misses,
             const Lengths& begin,
             const Lengths& end,
             backend::StreamRef stream);

  backend::ResolveCounts counts_{};
  Lengths lengths_;
  std::int64_t num_shared_ = 0;
  ReadArray<backend::ResolveCounts> read_counts_;
  ReadArray<Key> victims_, missing_, overflow_;
  ReadArray<std::int32_t> slots_;  // of the missing ones
  ReadArray<backend::OverflowRow> shared_;
};

}  // namespace satrap::embedding
