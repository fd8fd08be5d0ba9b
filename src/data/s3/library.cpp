#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <arrow/filesystem/s3fs.h>
#include <arrow/result.h>
#include <arrow/util/config.h>

#include "src/data/files/object_store.h"
#include "src/data/files/store_cache.h"
#include "src/data/http/http_client.h"
#include "src/data/s3/bucket.h"
#include "src/data/s3/failures.h"

namespace satrap::data {
namespace {

class S3Library : public StoreLibrary {
 public:
  S3Library() {
    arrow::fs::S3GlobalOptions options = arrow::fs::S3GlobalOptions::Defaults();
    options.log_level = arrow::fs::S3LogLevel::Off;
    throw_failure(arrow::fs::InitializeS3(options));
    // Arrow's own statics come with the first client, and must outlive this object.
    arrow::fs::S3Options nowhere = arrow::fs::S3Options::Anonymous();
    nowhere.region = "us-east-1";
    throw_failure(arrow::fs::S3FileSystem::Make(nowhere).status());
  }
  ~S3Library() override {
    buckets_.clear();
    static_cast<void>(arrow::fs::EnsureS3Finalized());
  }
  S3Library(const S3Library&) = delete;
  S3Library& operator=(const S3Library&) = delete;

  std::string describe() const override {
    return "S3 by " + curl_version_text() + " and Arrow " + ARROW_VERSION_STRING;
  }

  ObjectStore& connect(const std::string& bucket, double stall_s) override {
    return buckets_.find_or_open(bucket, stall_s, open_bucket);
  }

 private:
  const CurlInUse curl_;
  StoreCache buckets_;
};

}  // namespace
}  // namespace satrap::data

extern "C" satrap::data::StoreLibrary* satrap_s3();
satrap::data::StoreLibrary* satrap_s3() {
  static satrap::data::S3Library library;
  return &library;
}
