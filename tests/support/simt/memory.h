#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>

namespace simt {

/// A piece of work or a set of them (races.h); 0: none.
using Mark = std::uint32_t;

/// What a byte remembers: its last writer, and who has read it since.
struct Cell {
  Mark writer, readers;
  bool operator==(const Cell&) const = default;
};

/// A cell for each byte, at first 0. The system gives pages of them when they are first touched.
struct FreeCells {
  void operator()(Cell* cells) const { std::free(cells); }
};
using Cells = std::unique_ptr<Cell[], FreeCells>;

/// Memory of the device, or of the host: pinned, or registered.
struct Allocation {
  enum class Kind { kDevice, kPinned, kRegistered };
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  Kind kind = Kind::kDevice;
  int device = 0;           // of memory of a device
  std::int64_t number = 0;  // how many came before it
  Cells cells;              // of each byte
};

/// Addresses that belong to the same allocation, or to none, between two.
struct Range {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  Cell* cells = nullptr;  // null: of no allocation
  int device = -1;        // of device memory
  bool contains(std::uintptr_t address) const { return address - begin < bytes; }
};

/// The allocations of all devices. Bytes are freed by the caller.
class Memory {
 public:
  void add(const void* begin, std::size_t bytes, Allocation::Kind kind, int device);

  /// Whether one has some of these bytes.
  bool overlaps(const void* begin, std::size_t bytes) const;

  /// False if no allocation of that kind begins there.
  bool remove(const void* begin, Allocation::Kind kind);

  /// The one that holds this address; null if none does.
  const Allocation* find(std::uintptr_t address) const;
  Range range_at(std::uintptr_t address) const;

  /// Of all devices, and of one.
  std::size_t device_bytes() const;
  std::size_t device_bytes(int device) const;
  std::size_t registered_bytes() const { return registered_bytes_; }

  /// Another number whenever ranges change.
  std::int64_t version() const { return version_; }

 private:
  std::map<std::uintptr_t, Allocation> allocations_;  // by their begin
  std::map<int, std::size_t> device_bytes_;           // by device
  std::size_t registered_bytes_ = 0;
  std::int64_t version_ = 0, num_allocations_ = 0;
};

}  // namespace simt
