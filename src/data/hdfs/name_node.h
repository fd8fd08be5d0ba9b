#pragma once

#include <memory>
#include <string>

#include "src/data/store.h"

namespace satrap::data {

/// Reads by WebHDFS, as the user HADOOP_USER_NAME, or with the delegation token SATRAP_HDFS_TOKEN.
/// `address`: "host:port" of the name node's web server.
std::unique_ptr<Store> open_name_node(const std::string& address, double stall_s);

}  // namespace satrap::data
