#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

namespace ptx {

/// Sectors of 32 bytes, the units in which a GPU moves memory.
struct Sectors {
  std::int64_t read = 0, written = 0;
};

/// Whether bytes [address, address + bytes) lie within [begin, begin + size).
constexpr bool lies_within(std::uint64_t address,
                           std::uint64_t bytes,
                           std::uint64_t begin,
                           std::uint64_t size) {
  return address >= begin && bytes <= size && address - begin <= size - bytes;
}

/// Which warps have touched which bytes. No two may touch the same byte unless both only read it:
/// kernels here have no atomics, fences or block barriers, so nothing else would order them.
class Accesses {
 public:
  /// Notes an access to bytes [address, address + bytes) by `warp` in line `line`. Returns the race
  /// that it completes, or nothing.
  std::string note(std::uint64_t address,
                   std::uint64_t bytes,
                   bool writes,
                   std::uint32_t warp,
                   int line);

  /// The distinct sectors touched.
  Sectors sectors() const;

 private:
  /// The warp that wrote a byte, and the last one that read it.
  struct Byte {
    static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
    std::uint32_t writer = kNobody, reader = kNobody;
    bool has_several_readers = false;
    int write_line = 0, read_line = 0;
  };
  static constexpr std::uint64_t kPageBytes = 4096;
  using Page = std::array<Byte, kPageBytes>;

  Page& page_of(std::uint64_t address);
  static std::string touch(Byte& byte, bool writes, std::uint32_t warp, int line);

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t last_number_ = ~std::uint64_t{0};
  Page* last_page_ = nullptr;
};

/// Global memory during one launch. An access must lie within one allocation, of the device or of
/// pinned host memory.
class GlobalMemory {
 public:
  /// Checks an access by `warp`, a number that is unique within the launch, and notes it. Returns
  /// what is wrong, or nothing.
  std::string check(std::uint64_t address,
                    std::uint64_t bytes,
                    bool writes,
                    std::uint32_t warp,
                    int line);

  Sectors sectors() const { return accesses_.sectors(); }

 private:
  bool is_allocated(std::uint64_t address, std::uint64_t bytes);

  std::span<const std::byte> allocation_;  // the last one that was found
  Accesses accesses_;
};

}  // namespace ptx
