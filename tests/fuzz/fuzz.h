#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "satrap/core/error.h"

namespace satrap::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the fuzzer, which reports the input.
[[noreturn]] inline void fail(std::string_view what) {
  std::cerr << "fuzzer: " << what << std::endl;
  std::abort();
}

/// Runs `body`; whether it was refused by an Error. Whatever else it throws ends the fuzzer, and so
/// does an Error that stands for a bug of satrap.
template <class Body>
bool is_refused(Body&& body) {
  try {
    body();
    return false;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) fail(error.what());
    return true;
  }
}

}  // namespace satrap::fuzz
