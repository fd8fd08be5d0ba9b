#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/simt/clock.h"
#include "tests/support/simt/memory.h"

namespace simt {

/// Finds two pieces of work of different streams that touch the same byte of the device's or of
/// pinned memory, at least one of them writing, without an order between them. Whether there is an
/// order follows from clocks, which the program's calls determine, so every schedule shows such a
/// pair.
///
/// A piece of work is looked at when it runs. Each byte remembers its last writer and who has read
/// it since. That is enough: as long as nothing has been reported, everything before the last
/// writer is ordered before it.
class Races {
 public:
  explicit Races(const Memory& memory) : memory_(memory) {}

  /// While one lives, instrumented code of this thread tells what it touches (accesses.cpp).
  class Watch {
   public:
    explicit Watch(Races& races) { watching = &races; }
    ~Watch() { watching = nullptr; }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
  };
  static inline thread_local constinit Races* watching = nullptr;

  /// Begins a piece of work. `before`: the clock of its stream, with the work itself.
  void begin(std::string name, std::size_t stream, const Clock& before);
  /// Throws Fault if it or what it has touched was not ordered.
  void end() const;

  /// What it touches. `site` is a number of the code that does: it mostly stays in one allocation.
  template <bool kWrites, std::size_t kBytes>
  void touch(std::uintptr_t address, std::uintptr_t site) {
    const Range& range = range_at(address, site);
    if (range.writers == nullptr) return;  // a stack, shared memory, pageable memory
    const std::size_t first = address - range.begin;
    if (kBytes <= range.bytes - first) return note<kWrites, kBytes>(range, first);
    touch_range<kWrites>(address, kBytes, site);
  }
  template <bool kWrites>
  void touch_range(std::uintptr_t address, std::size_t bytes, std::uintptr_t site = 0) {
    const Range& range = range_at(address, site);
    if (range.writers == nullptr) return;
    std::size_t i = address - range.begin;
    const std::size_t last = std::min(range.bytes, i + bytes);
    for (; i + 16 <= last; i += 16) note<kWrites, 16>(range, i);
    for (; i < last; ++i) note<kWrites, 1>(range, i);
  }

 private:
  struct Done {
    std::string name;
    std::size_t stream;
    std::int64_t count;  // of the stream's clock
  };
  static constexpr Mark kSet = Mark{1} << 31;

  const Range& range_at(std::uintptr_t address, std::uintptr_t site) {
    Range& of_site = by_site_[site % by_site_.size()];
    if (of_site.contains(address)) return of_site;
    Range& of_page = by_page_[(address >> 14) % by_page_.size()];
    if (!of_page.contains(address)) of_page = memory_.range_at(address);
    return of_site = of_page;
  }

  template <std::size_t kCount>
  static bool are(const Mark* marks, Mark mark) {
    Mark difference = 0;
    for (std::size_t i = 0; i < kCount; ++i) difference |= marks[i] ^ mark;
    return difference == 0;
  }

  /// Neighbouring bytes mostly have the same marks.
  template <bool kWrites, std::size_t kBytes>
  void note(const Range& range, std::size_t first) {
    Mark* const writers = range.writers + first;
    Mark* const readers = range.readers + first;
    const Mark writer = writers[0], reader = readers[0];
    if (!are<kBytes>(writers, writer) || (writer != mark_ && !are<kBytes>(readers, reader))) {
      for (std::size_t i = 0; i < kBytes; ++i) note<kWrites, 1>(range, first + i);
      return;
    }
    if (writer == mark_ || (!kWrites && (reader == mark_ || reader >= first_set_))) return;
    if (writer != known_before_) check(writer, true, kWrites, range.begin + first);
    if constexpr (kWrites) {
      if (reader != 0) check_readers(reader, range.begin + first);
      std::fill_n(readers, kBytes, Mark{0});
      std::fill_n(writers, kBytes, mark_);
    } else {
      std::fill_n(readers, kBytes, with_this_reader(reader));
    }
  }
  void check(Mark earlier, bool earlier_writes, bool writes, std::uintptr_t address);
  void check_readers(Mark readers, std::uintptr_t address);
  bool is_before(Mark work) const { return works_[work].count <= before_.of(works_[work].stream); }
  std::span<const Mark> members(const Mark& mark) const;
  Mark with_this_reader(Mark readers);

  const Memory& memory_;
  std::vector<Done> works_{{"nothing", 0, 0}};  // by mark
  std::vector<std::vector<Mark>> sets_;         // by mark, without kSet
  // Of the work that runs:
  Mark mark_ = 0, first_set_ = kSet;  // it is in all sets from this one on
  Clock before_;
  Mark known_before_ = 0;                   // one that is before it
  std::map<Mark, Mark> with_reader_;        // sets of readers, without and with it
  std::pair<Mark, Mark> last_with_reader_;  // the entry that was looked up last
  std::string fault_;                       // the first
  // Ranges that were found last: code mostly stays in one, but stacks of lanes are in many.
  std::array<Range, 512> by_site_{}, by_page_{};
  std::int64_t version_ = -1;  // of the memory whose ranges they are
};

}  // namespace simt
