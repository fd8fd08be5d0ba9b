#pragma once

#include <optional>
#include <string>

#include <arrow/filesystem/s3fs.h>

#include "src/data/http/http_client.h"

namespace satrap::data {

/// The options of a bucket's client: credentials, region and server are where open_bucket says,
/// certificates in AWS_CA_BUNDLE. Throws a StoreFailure.
arrow::fs::S3Options options_for(const std::string& bucket, double stall_s);

/// The URL of the bucket's objects for such a client; without a slash at its end.
std::string url_of_bucket(const std::string& bucket, const arrow::fs::S3Options& options);

/// With the credentials that such a client would use now; asks for new ones when they expire, which
/// may take seconds. None: there are no credentials, and requests are anonymous.
std::optional<S3Signer> signer_of(const arrow::fs::S3Options& options);

}  // namespace satrap::data
