#pragma once

#include <string>
#include <utility>

#include "satrap/core/config.h"
#include "satrap/core/error.h"

namespace satrap::job {

/// Adds the place of a value to the front of a message that begins with its path ("model.top:
/// ...").
template <class Body>
void with_place(const ConfigOrigins& origins, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    const std::string message = error.what();
    const auto origin = origins.find(message.substr(0, message.find(':')));
    if (origin == origins.end()) throw;
    throw Error(error.code(), concat(origin->second, ": ", message));
  }
}

}  // namespace satrap::job
