#pragma once

#include <string>

namespace satrap::data {

/// What topics are read with. Throws Error(kUnavailable), with the remedy, if this satrap was built
/// without it.
std::string describe_kafka();

}  // namespace satrap::data
