#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "satrap/net/net_error.h"

namespace satrap::net {

/// Builds a message of numbers (in this machine's byte order; the magic number lets both ends check
/// that they agree) and texts with their length in front.
class ByteWriter {
 public:
  template <std::integral T>
  ByteWriter& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  ByteWriter& put_text(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Parses such a message. Throws NetError(kProtocol) if it ends too early.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <std::integral T>
  T get() {
    T value;
    const std::string_view bytes = take(sizeof(T));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::string get_text() { return std::string(take(get<std::uint32_t>())); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view take(std::size_t count) {
    if (count > rest_.size()) {
      throw NetError(NetFailure::kProtocol, concat("message ends early: ", count, " bytes needed, ",
                                                   rest_.size(), " left"));
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
};

}  // namespace satrap::net
