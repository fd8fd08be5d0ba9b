#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace satrap::dense {

/// Numbers at a 64-byte boundary, zero at first. Matrix products are faster there, and their last
/// bits may depend on the alignment.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(std::int64_t size) : size_(size) {
    const std::size_t bytes = (static_cast<std::size_t>(size) * sizeof(T) + 63) / 64 * 64;
    if (bytes == 0) return;
    data_.reset(static_cast<T*>(std::aligned_alloc(64, bytes)));
    if (data_ == nullptr) throw std::bad_alloc();
    std::uninitialized_fill_n(data_.get(), bytes / sizeof(T), T{});
  }

  T* data() const { return data_.get(); }
  std::int64_t size() const { return size_; }
  std::span<T> span() const { return {data_.get(), static_cast<std::size_t>(size_)}; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> data_;
  std::int64_t size_ = 0;
};

using AlignedBuffer = AlignedArray<float>;

}  // namespace satrap::dense
