#pragma once

#include <string>

namespace satrap::data {

/// What files in S3, and in HDFS, are read with. Throw Error(kUnavailable), with the remedy, if
/// this satrap was built without it.
std::string describe_s3();
std::string describe_hdfs();

}  // namespace satrap::data
