#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "satrap/core/error.h"

namespace satrap::data {

/// Appends values to bytes, as they are in memory.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  template <class T>
  void put(const T* values, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::byte* const out = extend(count * sizeof(T));
    if (count > 0) std::memcpy(out, values, count * sizeof(T));
  }
  template <class T>
  void put(const T& value) {
    put(&value, 1);
  }
  void put_text(std::string_view text) {
    put(text.size());
    put(text.data(), text.size());
  }

  /// Where the next `size` bytes are to be written.
  std::byte* extend(std::size_t size) {
    bytes_.resize(bytes_.size() + size);
    return bytes_.data() + bytes_.size() - size;
  }

 private:
  std::vector<std::byte>& bytes_;
};

/// Takes values from bytes that ByteWriter wrote. Throws Error(kCorrupt) where there are too few.
class ByteReader {
 public:
  /// `what` the bytes are, for errors.
  ByteReader(std::span<const std::byte> bytes, const char* what) : rest_(bytes), what_(what) {}

  template <class T>
  void get(T* values, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::byte* const in = take(count, sizeof(T));
    if (count > 0) std::memcpy(values, in, count * sizeof(T));
  }
  template <class T>
  T get() {
    T value;
    get(&value, 1);
    return value;
  }
  template <class T>
  void get_all(std::vector<T>& values, std::size_t count) {
    require(count, sizeof(T));
    values.resize(count);
    get(values.data(), count);
  }
  std::string get_text() {
    const auto size = get<std::size_t>();
    const std::byte* const in = take(size, 1);
    return {reinterpret_cast<const char*>(in), size};
  }

  std::span<const std::byte> rest() const { return rest_; }

  /// The beginning of the next `count` values of `size` bytes.
  const std::byte* take(std::size_t count, std::size_t size) {
    require(count, size);
    const std::byte* const begin = rest_.data();
    rest_ = rest_.subspan(count * size);
    return begin;
  }

  /// Throws unless so many values are left.
  void require(std::size_t count, std::size_t size) const {
    if (count <= rest_.size() / size) return;
    fail(concat(rest_.size(), " bytes are left where ", count, " values of ", size,
                " bytes are expected"));
  }
  void require_end() const {
    if (!rest_.empty()) fail(concat(rest_.size(), " bytes too many"));
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorCode::kCorrupt, concat(what_, ": ", why));
  }

 private:
  std::span<const std::byte> rest_;
  const char* what_;
};

}  // namespace satrap::data
