#pragma once

#include <string>

namespace satrap::data {

/// The library that reads Parquet files. Throws Error(kUnavailable), with the remedy, if this
/// satrap was built without it.
std::string describe_parquet();

}  // namespace satrap::data
