#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <arrow/filesystem/s3fs.h>
#include <arrow/result.h>
#include <arrow/util/config.h>

#include "src/data/s3/bucket.h"
#include "src/data/store.h"
#include "src/data/store_cache.h"

namespace satrap::data {
namespace {

class ArrowS3Library : public StoreLibrary {
 public:
  ArrowS3Library() {
    arrow::fs::S3GlobalOptions options = arrow::fs::S3GlobalOptions::Defaults();
    options.log_level = arrow::fs::S3LogLevel::Off;
    throw_failure(arrow::fs::InitializeS3(options));
    // Arrow's own statics come with the first client, and must outlive this object.
    arrow::fs::S3Options nowhere = arrow::fs::S3Options::Anonymous();
    nowhere.region = "us-east-1";
    throw_failure(arrow::fs::S3FileSystem::Make(nowhere).status());
  }
  ~ArrowS3Library() override {
    buckets_.clear();
    static_cast<void>(arrow::fs::EnsureS3Finalized());
  }
  ArrowS3Library(const ArrowS3Library&) = delete;
  ArrowS3Library& operator=(const ArrowS3Library&) = delete;

  std::string describe() const override {
    return std::string("S3 by Arrow ") + ARROW_VERSION_STRING;
  }

  Store& connect(const std::string& bucket, double stall_s) override {
    return buckets_.find_or_open(bucket, stall_s, open_bucket);
  }

 private:
  StoreCache buckets_;
};

}  // namespace
}  // namespace satrap::data

extern "C" satrap::data::StoreLibrary* satrap_s3();
satrap::data::StoreLibrary* satrap_s3() {
  static satrap::data::ArrowS3Library library;
  return &library;
}
