#include "src/embedding/resolve_lists.h"

#include <algorithm>

namespace satrap::embedding {

ResolveLists::ResolveLists(backend::Device& device)
    : read_counts_(device),
      victims_(device),
      missing_(device),
      overflow_(device),
      slots_(device),
      shared_(device) {}

void ResolveLists::read(const backend::MissView& misses,
                        const backend::ResolveArguments& arguments,
                        std::int64_t num_ids,
                        const backend::Stream& stream) {
  num_shared_ = arguments.num_shared;

  // None after none: where all rows are found, nothing is copied in vain.
  const auto likely_after = [](std::int64_t count, std::int64_t limit) {
    return count == 0 ? 0 : std::min(count + count / 16 + 2, limit);
  };
  const Lengths likely = {
      .victims = likely_after(lengths_.victims, num_ids),
      .missing = likely_after(lengths_.missing, num_ids),
      .overflow = likely_after(lengths_.overflow, std::min(num_ids, arguments.max_overflow))};
  read_counts_.queue(misses.counts, 0, 1, stream);
  shared_.queue(arguments.shared, 0, num_shared_, stream);
  queue(misses, {}, likely, stream);
  stream.wait_until_idle();

  counts_ = read_counts_.first(1).front();
  lengths_ = {.victims = counts_.writebacks,
              .missing = counts_.misses,
              .overflow = std::min<std::int64_t>(counts_.overflows, arguments.max_overflow)};
  if (lengths_.victims <= likely.victims && lengths_.missing <= likely.missing &&
      lengths_.overflow <= likely.overflow) {
    return;
  }
  queue(misses, likely, lengths_, stream);
  stream.wait_until_idle();
}

void ResolveLists::queue(const backend::MissView& misses,
                         const Lengths& begin,
                         const Lengths& end,
                         backend::StreamRef stream) {
  victims_.queue(misses.writeback_keys, begin.victims, end.victims, stream);
  missing_.queue(misses.miss_keys, begin.missing, end.missing, stream);
  slots_.queue(misses.miss_slots, begin.missing, end.missing, stream);
  overflow_.queue(misses.overflow_keys, begin.overflow, end.overflow, stream);
}

}  // namespace satrap::embedding
