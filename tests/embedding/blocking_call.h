#pragma once

#include <chrono>
#include <future>
#include <string>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::embedding {

/// Makes a call that may block on a thread of its own: the message of its Error, "" without one.
template <class Call>
std::future<std::string> message_of_blocking(Call call) {
  return std::async(std::launch::async, [call = std::move(call)]() mutable -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  });
}

inline std::string result_of(std::future<std::string>& message) {
  constexpr std::chrono::seconds kDeadline(60);
  if (message.wait_for(kDeadline) != std::future_status::ready) return "it still blocks";
  return message.get();
}

/// Whether a call still blocks although it had time to return: false shows a fault, true proves
/// nothing.
inline bool blocks(const std::future<std::string>& message) {
  return message.wait_for(std::chrono::milliseconds(10)) == std::future_status::timeout;
}

}  // namespace satrap::embedding
