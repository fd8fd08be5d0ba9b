#include "tests/support/simt/memory.h"

#include <bit>
#include <iterator>
#include <limits>
#include <new>

namespace simt {
namespace {

Cells make_cells(std::size_t count) {
  auto* const cells = static_cast<Cell*>(std::calloc(count == 0 ? 1 : count, sizeof(Cell)));
  if (cells == nullptr) throw std::bad_alloc();
  return Cells(cells);
}

}  // namespace

void Memory::add(const void* begin, std::size_t bytes, Allocation::Kind kind, int device) {
  const auto address = std::bit_cast<std::uintptr_t>(begin);
  allocations_[address] = {address, bytes, kind, device, num_allocations_++, make_cells(bytes)};
  if (kind == Allocation::Kind::kDevice) device_bytes_[device] += bytes;
  if (kind == Allocation::Kind::kRegistered) registered_bytes_ += bytes;
  ++version_;
}

bool Memory::remove(const void* begin, Allocation::Kind kind) {
  const auto found = allocations_.find(std::bit_cast<std::uintptr_t>(begin));
  if (found == allocations_.end() || found->second.kind != kind) return false;
  if (kind == Allocation::Kind::kDevice) {
    device_bytes_[found->second.device] -= found->second.bytes;
  }
  if (kind == Allocation::Kind::kRegistered) registered_bytes_ -= found->second.bytes;
  allocations_.erase(found);
  ++version_;
  return true;
}

bool Memory::overlaps(const void* begin, std::size_t bytes) const {
  const auto address = std::bit_cast<std::uintptr_t>(begin);
  const auto next = allocations_.lower_bound(address);
  return find(address) != nullptr || (next != allocations_.end() && next->first < address + bytes);
}

std::size_t Memory::device_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [device, count] : device_bytes_) bytes += count;
  return bytes;
}

std::size_t Memory::device_bytes(int device) const {
  const auto found = device_bytes_.find(device);
  return found == device_bytes_.end() ? 0 : found->second;
}

const Allocation* Memory::find(std::uintptr_t address) const {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return nullptr;
  const Allocation& allocation = std::prev(after)->second;
  return address - allocation.begin < allocation.bytes ? &allocation : nullptr;
}

Range Memory::range_at(std::uintptr_t address) const {
  if (const Allocation* const found = find(address)) {
    return {found->begin, found->bytes, found->cells.get(),
            found->kind == Allocation::Kind::kDevice ? found->device : -1};
  }
  const auto after = allocations_.upper_bound(address);
  std::uintptr_t begin = 0, end = std::numeric_limits<std::uintptr_t>::max();
  if (after != allocations_.begin()) {
    const Allocation& before = std::prev(after)->second;
    begin = before.begin + before.bytes;
  }
  if (after != allocations_.end()) end = after->first;
  return {.begin = begin, .bytes = end - begin};
}

}  // namespace simt
