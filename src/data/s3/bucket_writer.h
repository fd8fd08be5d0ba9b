#pragma once

#include <memory>
#include <string>

#include <arrow/filesystem/s3fs.h>

#include "src/data/files/object_store.h"

namespace satrap::data {

/// Writes the objects of a bucket: small ones by one request, larger ones in parts of which nothing
/// shows until the last request. A process that is killed before leaves parts behind, which a
/// lifecycle rule of the bucket (AbortIncompleteMultipartUpload) removes.
class BucketWriter : public StoreWriter {
 public:
  BucketWriter(std::string bucket, std::shared_ptr<arrow::fs::S3FileSystem> files);

  void write(const std::string& path, const RandomFile& content) override;
  void remove_file(const std::string& path) override;
  void remove_folder(const std::string& path) override;

 private:
  const std::string bucket_;
  const std::shared_ptr<arrow::fs::S3FileSystem> files_;
};

}  // namespace satrap::data
