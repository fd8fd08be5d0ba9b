#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
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

using DeviceSet = std::bitset<64>;

/// Finds two pieces of work of different streams that touch the same byte of the device's or of
/// pinned memory, at least one of them writing, without an order between them. Whether there is an
/// order follows from clocks, which the program's calls determine, so every schedule shows such a
/// pair. Finds work, too, that touches memory of a device to which its own has no access.
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
  /// `devices`: whose memory it may touch.
  void begin(std::string name, std::size_t stream, const Clock& before, DeviceSet devices);
  /// Throws Fault if it or what it has touched was not ordered, or of another device.
  void end() const;

  /// Whether work that began after next() was this has written any of these bytes.
  Mark next() const { return static_cast<Mark>(works_.size()); }
  bool has_written_since(Mark next, std::span<const std::byte> bytes) const;

  /// What it touches. `site` is a number of the code that does: it mostly stays in one allocation.
  template <bool kWrites, std::size_t kBytes>
  void touch(std::uintptr_t address, std::uintptr_t site) {
    const Range& range = range_at(address, site);
    if (range.cells == nullptr) return;  // a stack, shared memory, pageable memory
    const std::size_t first = address - range.begin;
    if (kBytes <= range.bytes - first) return note<kWrites, kBytes>(range, first);
    touch_range<kWrites>(address, kBytes, site);
  }
  template <bool kWrites>
  void touch_range(std::uintptr_t address, std::size_t bytes, std::uintptr_t site = 0) {
    const Range& range = range_at(address, site);
    if (range.cells == nullptr) return;
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
    Range& range = by_site_[site % by_site_.size()];
    if (!range.contains(address)) [[unlikely]]
      range = another_range_at(address);
    return range;
  }
  const Range& another_range_at(std::uintptr_t address);

  /// Neighbouring bytes mostly have been touched by the same work.
  template <bool kWrites, std::size_t kBytes>
  void note(const Range& range, std::size_t first) {
    Cell* const cells = range.cells + first;
    const Cell cell = cells[0];
    std::uint64_t differences = 0;
    for (std::size_t i = 1; i < kBytes; ++i) {
      differences |= std::bit_cast<std::uint64_t>(cells[i]) ^ std::bit_cast<std::uint64_t>(cell);
    }
    if (differences != 0) [[unlikely]] {
      for (std::size_t i = 0; i < kBytes; ++i) note<kWrites, 1>(range, first + i);
    } else if (!is_known<kWrites>(cell)) {
      std::fill_n(cells, kBytes, after<kWrites>(cell, range.begin + first));
    }
  }
  /// Whether the work has left this cell, and changes nothing by touching it once more.
  template <bool kWrites>
  bool is_known(Cell cell) const {
    return cell.writer == mark_ ||
           (!kWrites && (cell.readers == mark_ || cell.readers >= first_set_));
  }
  /// The cell after the work has touched it. Reports what it was not ordered with.
  template <bool kWrites>
  Cell after(Cell cell, std::uintptr_t address) {
    if (cell.writer != known_before_) check(cell.writer, true, kWrites, address);
    if (!kWrites) return {cell.writer, with_this_reader(cell.readers)};
    if (cell.readers != 0) check_readers(cell.readers, address);
    return {mark_, 0};
  }
  void check(Mark earlier, bool earlier_writes, bool writes, std::uintptr_t address);
  void check_readers(Mark readers, std::uintptr_t address);
  bool is_before(Mark work) const { return works_[work].count <= before_.of(works_[work].stream); }
  std::span<const Mark> members(const Mark& mark) const;
  Mark with_this_reader(Mark readers);

  const Memory& memory_;
  std::vector<Done> works_{{"nothing", 0, 0}};  // by mark
  std::vector<std::vector<Mark>> sets_;         // by mark, without kSet
  // The work that runs:
  Mark mark_ = 0, first_set_ = kSet;  // it is in all sets from this one on
  Clock before_;
  Mark known_before_ = 0;                   // one that is before it
  std::map<Mark, Mark> with_reader_;        // sets of readers, without and with it
  std::pair<Mark, Mark> last_with_reader_;  // the entry that was looked up last
  DeviceSet devices_;                       // whose memory it may touch
  std::string fault_;                       // the first
  // Ranges that were found last: code mostly stays in one, but stacks of lanes are in many.
  std::array<Range, 512> by_site_{}, by_page_{};
  std::int64_t version_ = -1;  // of the memory whose ranges they are
};

}  // namespace simt
