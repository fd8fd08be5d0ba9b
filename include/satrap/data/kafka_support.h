#pragma once

#include <string>

namespace satrap::data {

/// The library that reads topics. Throws Error(kUnavailable), with the remedy, if this satrap was
/// built without it.
std::string describe_kafka();

}  // namespace satrap::data
