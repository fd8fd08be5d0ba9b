#pragma once

#include <string>

namespace satrap::data {

/// What Parquet files are read with. Throws Error(kUnavailable), with the remedy, if this satrap
/// was built without it.
std::string describe_parquet();

}  // namespace satrap::data
