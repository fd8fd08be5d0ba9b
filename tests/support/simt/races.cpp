#include "tests/support/simt/races.h"

#include <algorithm>
#include <ranges>

#include "tests/support/simt/executor.h"

namespace simt {
namespace {

std::string name_of(Allocation::Kind kind) {
  switch (kind) {
    case Allocation::Kind::kDevice:
      return "device";
    case Allocation::Kind::kPinned:
      return "pinned";
    case Allocation::Kind::kRegistered:
      return "registered";
  }
  return {};
}

}  // namespace

void Races::begin(std::string name, std::size_t stream, const Clock& before, DeviceSet devices) {
  mark_ = static_cast<Mark>(works_.size());
  first_set_ = kSet | static_cast<Mark>(sets_.size());
  before_ = before;
  works_.push_back({std::move(name), stream, before.of(stream)});
  with_reader_.clear();
  last_with_reader_ = {};
  known_before_ = 0;
  fault_.clear();
  if (version_ != memory_.version() || (devices_ & ~devices).any()) by_site_ = by_page_ = {};
  devices_ = devices;
  version_ = memory_.version();
}

void Races::end() const {
  if (!fault_.empty()) throw Fault(fault_);
}

bool Races::has_written_since(Mark next, std::span<const std::byte> bytes) const {
  const auto address = std::bit_cast<std::uintptr_t>(bytes.data());
  const Range range = memory_.range_at(address);
  if (range.cells == nullptr) return false;
  const std::span<const Cell> cells(range.cells, range.bytes);
  const std::size_t first = address - range.begin;
  return std::ranges::any_of(cells.subspan(first, std::min(bytes.size(), range.bytes - first)),
                             [&](const Cell& cell) { return cell.writer >= next; });
}

const Range& Races::another_range_at(std::uintptr_t address) {
  Range& range = by_page_[(address >> 14) % by_page_.size()];
  if (range.contains(address)) return range;
  range = memory_.range_at(address);
  if (range.device >= 0 && !devices_.test(static_cast<std::size_t>(range.device))) {
    if (fault_.empty()) {
      fault_ = works_[mark_].name + " touches memory of device " + std::to_string(range.device) +
               ", to which its device has no access (cudaDeviceEnablePeerAccess)";
    }
    range = {};  // so that the next work is told, too
    static constexpr Range kNone;
    return kNone;
  }
  return range;
}

void Races::check(Mark earlier, bool earlier_writes, bool writes, std::uintptr_t address) {
  if (is_before(earlier)) {
    known_before_ = earlier;
    return;
  }
  if (!fault_.empty()) return;
  const Allocation& where = *memory_.find(address);
  fault_ = "race between streams: " + works_[mark_].name + (writes ? " writes" : " reads") +
           " what " + works_[earlier].name + (earlier_writes ? " writes" : " reads") +
           ", without an order: byte " + std::to_string(address - where.begin) + " of the " +
           std::to_string(where.bytes) + " of " + name_of(where.kind) + " allocation " +
           std::to_string(where.number);
}

void Races::check_readers(Mark readers, std::uintptr_t address) {
  for (const Mark reader : members(readers)) check(reader, false, true, address);
}

std::span<const Mark> Races::members(const Mark& mark) const {
  if (mark >= kSet) return sets_[mark - kSet];
  return {&mark, 1};
}

/// Those whose order with this work does not follow from its being the last.
Mark Races::with_this_reader(Mark readers) {
  if (readers == 0) return mark_;
  if (readers == last_with_reader_.first) return last_with_reader_.second;
  auto [known, is_new] = with_reader_.try_emplace(readers, mark_);
  if (is_new) {
    std::vector<Mark> set{mark_};
    std::ranges::copy_if(members(readers), std::back_inserter(set),
                         [&](Mark reader) { return !is_before(reader); });
    if (set.size() > 1) {
      known->second = kSet | static_cast<Mark>(sets_.size());
      sets_.push_back(std::move(set));
    }
  }
  last_with_reader_ = *known;
  return known->second;
}

}  // namespace simt
