#pragma once

#include <string>

namespace satrap::data {

/// The libraries that read files in S3, and in HDFS. Throw Error(kUnavailable), with the remedy, if
/// this satrap was built without it.
std::string describe_s3();
std::string describe_hdfs();

}  // namespace satrap::data
