#pragma once

#include <memory>
#include <string>

#include "src/data/files/object_store.h"

namespace satrap::data {

/// Credentials, region and endpoint are those of the AWS tools: AWS_ACCESS_KEY_ID,
/// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE with ~/.aws, a role of the machine;
/// AWS_REGION or AWS_DEFAULT_REGION; AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL.
/// Throws a StoreFailure.
std::unique_ptr<ObjectStore> open_bucket(const std::string& bucket, double stall_s);

}  // namespace satrap::data
