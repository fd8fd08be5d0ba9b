#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace satrap::dense {

/// Floats at a 64-byte boundary, zero at first. Matrix products are faster there, and their last
/// bits may depend on the alignment.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::int64_t size) : size_(size) {
    const std::size_t bytes = (static_cast<std::size_t>(size) * sizeof(float) + 63) / 64 * 64;
    if (bytes == 0) return;
    data_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    if (data_ == nullptr) throw std::bad_alloc();
    std::uninitialized_fill_n(data_.get(), bytes / sizeof(float), 0.0F);
  }

  float* data() const { return data_.get(); }
  std::int64_t size() const { return size_; }
  std::span<float> span() const { return {data_.get(), static_cast<std::size_t>(size_)}; }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float[], Free> data_;
  std::int64_t size_ = 0;
};

}  // namespace satrap::dense
