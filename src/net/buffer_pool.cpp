#include "src/net/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace satrap::net {
namespace {

constexpr std::uint64_t kMinBytes = 4096;
constexpr std::size_t kAlignment = 64;

class OutOfMemory final : public std::bad_alloc {
 public:
  const char* what() const noexcept override { return "out of memory for a message"; }
};

std::size_t size_class(std::uint64_t bytes) {
  return static_cast<std::size_t>(std::bit_width(std::max(bytes, kMinBytes) - 1));
}

}  // namespace

PooledMemory BufferPool::take(std::int64_t bytes) {
  if (bytes > kMaxBytes) throw OutOfMemory();
  const std::size_t k = size_class(static_cast<std::uint64_t>(bytes));
  const std::int64_t capacity = std::int64_t{1} << k;
  {
    const MutexLock lock(mutex_);
    used_bytes_ += capacity;
    most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
    if (!free_[k].empty()) {
      PooledMemory memory = std::move(free_[k].back());
      free_[k].pop_back();
      kept_bytes_ -= capacity;
      return memory;
    }
  }
  auto* data =
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<std::size_t>(capacity)));
  if (data == nullptr) {
    const MutexLock lock(mutex_);
    used_bytes_ -= capacity;
    throw OutOfMemory();
  }
  return {data, capacity};
}

bool BufferPool::is_too_much(const PooledMemory& more) const {
  return used_bytes_ + kept_bytes_ + more.capacity() > most_used_bytes_;
}

void BufferPool::give_back(PooledMemory memory) {
  if (memory.data() == nullptr) return;
  const MutexLock lock(mutex_);
  used_bytes_ -= memory.capacity();
  // Frees memory left by other kinds of messages, the largest first.
  for (std::size_t k = free_.size(); k-- > 0;) {
    for (; is_too_much(memory) && !free_[k].empty(); free_[k].pop_back()) {
      kept_bytes_ -= free_[k].back().capacity();
    }
  }
  if (is_too_much(memory)) return;
  kept_bytes_ += memory.capacity();
  free_[size_class(static_cast<std::uint64_t>(memory.capacity()))].push_back(std::move(memory));
}

}  // namespace satrap::net
