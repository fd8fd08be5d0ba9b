#pragma once

#include <string>

#include "src/data/files/object_store.h"

namespace satrap::data {

/// The library of `scheme`, "s3" or "hdfs"; opens it on the first call. Throws
/// Error(kUnavailable) if it is not there.
StoreLibrary& store_library(const std::string& scheme);

}  // namespace satrap::data
