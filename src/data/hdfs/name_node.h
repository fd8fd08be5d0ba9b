#pragma once

#include <memory>
#include <string>

#include "src/data/files/object_store.h"
#include "src/data/http/http_client.h"

namespace satrap::data {

/// The part of a request that identifies the user, "&user.name=..."; a secret. "": nothing does.
std::string identity();

/// Throws the StoreFailure of an answer that is not the one hoped for.
[[noreturn]] void throw_failure(const HttpAnswer& answer);

/// Reads and writes by WebHDFS, as the user HADOOP_USER_NAME, or with the delegation token
/// SATRAP_HDFS_TOKEN. `address`: "host:port" of the name node's web server.
std::unique_ptr<ObjectStore> open_name_node(const std::string& address, double stall_s);

}  // namespace satrap::data
