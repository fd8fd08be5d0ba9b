#include "src/table/memory_block.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <sys/mman.h>

#include "satrap/core/error.h"

namespace satrap::table {
namespace {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

[[noreturn]] void out_of_memory(std::int64_t bytes) {
  throw Error(ErrorCode::kUnavailable,
              concat("out of memory: ", bytes, " bytes for embedding rows refused by the system"));
}

}  // namespace

MemoryBlock::MemoryBlock(std::int64_t bytes, std::int64_t alignment) {
  SATRAP_CHECK(bytes > 0, "block of ", bytes, " bytes");
  if (bytes < kMappedBytes) {
    const std::int64_t size = round_up(bytes, alignment);
    void* memory =
        std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(size));
    if (memory == nullptr) out_of_memory(bytes);
    std::memset(memory, 0, static_cast<std::size_t>(size));
    data_ = static_cast<std::byte*>(memory);
    return;
  }
  const bool huge = bytes >= kHugeBytes;
  const std::int64_t slack = huge ? kHugePageBytes : 0;
  mapped_bytes_ = round_up(bytes, kPageBytes) + slack;
  mapping_ = mmap(nullptr, static_cast<std::size_t>(mapped_bytes_), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) {
    mapping_ = nullptr;
    out_of_memory(bytes);
  }
  data_ = static_cast<std::byte*>(mapping_);
  if (huge) {
    const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
    data_ += -address % static_cast<std::uintptr_t>(kHugePageBytes);
    madvise(data_, static_cast<std::size_t>(round_up(bytes, kPageBytes)), MADV_HUGEPAGE);
  }
}

MemoryBlock::~MemoryBlock() {
  if (mapping_ != nullptr) {
    munmap(mapping_, static_cast<std::size_t>(mapped_bytes_));
  } else {
    std::free(data_);
  }
}

MemoryBlock::MemoryBlock(MemoryBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

MemoryBlock& MemoryBlock::operator=(MemoryBlock&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  return *this;
}

}  // namespace satrap::table
