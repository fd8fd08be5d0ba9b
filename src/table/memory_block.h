#pragma once

#include <cstddef>
#include <cstdint>

namespace satrap::table {

/// Owns a block of zeroed memory: a multiple of its alignment, which is kAlignment or kPageBytes.
/// Small blocks come from the heap; from kMappedBytes on they are mapped, so that untouched pages
/// take no memory, and from kHugeBytes on they request huge pages: rows and entries are read in
/// random order, and most of that cost is address translation.
class MemoryBlock {
 public:
  static constexpr std::int64_t kAlignment = 64;
  static constexpr std::int64_t kPageBytes = 4096;
  static constexpr std::int64_t kHugePageBytes = std::int64_t{2} << 20;
  static constexpr std::int64_t kMappedBytes = std::int64_t{256} << 10;
  static constexpr std::int64_t kHugeBytes = std::int64_t{4} << 20;

  MemoryBlock() = default;
  /// Throws Error(kUnavailable) if memory is exhausted.
  explicit MemoryBlock(std::int64_t bytes, std::int64_t alignment = kAlignment);
  ~MemoryBlock();
  MemoryBlock(MemoryBlock&& other) noexcept;
  MemoryBlock& operator=(MemoryBlock&& other) noexcept;

  std::byte* data() const { return data_; }

  /// Page size of a mapped block of `bytes`.
  static constexpr std::int64_t page_bytes(std::int64_t bytes) {
    return bytes >= kHugeBytes ? kHugePageBytes : kPageBytes;
  }

 private:
  std::byte* data_ = nullptr;
  void* mapping_ = nullptr;  // for mapped blocks: the argument of munmap
  std::int64_t mapped_bytes_ = 0;
};

}  // namespace satrap::table
