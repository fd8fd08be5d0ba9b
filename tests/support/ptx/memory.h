#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

namespace ptx {

/// Global memory during one launch. An access must lie within one allocation, of the device or of
/// pinned host memory, and no two warps may touch the same byte unless both only read it: kernels
/// here have neither atomics nor fences, so nothing else would order them.
class GlobalMemory {
 public:
  /// Checks an access to bytes [address, address + bytes) by `warp`, a number that is unique within
  /// the launch, in line `line`. Returns what is wrong, or nothing.
  std::string check(std::uint64_t address,
                    std::int64_t bytes,
                    bool writes,
                    std::uint32_t warp,
                    int line);

 private:
  /// Who has touched a byte so far: the warp that wrote it, and one that read it.
  struct Byte {
    static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
    std::uint32_t writer = kNobody, reader = kNobody;
    bool has_several_readers = false;
    int write_line = 0, read_line = 0;
  };
  static constexpr std::uint64_t kPageBytes = 4096;
  using Page = std::array<Byte, kPageBytes>;

  bool is_allocated(std::uint64_t address, std::int64_t bytes);
  Page& page_of(std::uint64_t address);
  static std::string touch(Byte& byte, bool writes, std::uint32_t warp, int line);

  std::span<const std::byte> allocation_;  // the last one that was found
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t last_number_ = ~std::uint64_t{0};
  Page* last_page_ = nullptr;
};

}  // namespace ptx
