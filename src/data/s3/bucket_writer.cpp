#include "src/data/s3/bucket_writer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <arrow/io/interfaces.h>
#include <arrow/result.h>

#include "src/data/s3/failures.h"

namespace satrap::data {
namespace {

/// At most 10,000 parts make an object: larger ones get larger parts.
constexpr std::int64_t kLeastPart = std::int64_t{16} << 20, kMostParts = 9'000;

void ignore_missing(const arrow::Status& status) {
  try {
    throw_failure(status);
  } catch (const StoreFailure& failure) {
    if (failure.kind() != StoreFailure::Kind::kMissing) throw;
  }
}

void copy_into(arrow::io::OutputStream& out, const RandomFile& content) {
  const std::int64_t size = content.size();
  const std::int64_t part = std::max(kLeastPart, size / kMostParts);
  std::vector<char> bytes(static_cast<std::size_t>(std::min(part, size)));
  for (std::int64_t begin = 0; begin < size;) {
    const std::int64_t count = std::min(part, size - begin);
    content.read(begin, std::span(bytes).first(static_cast<std::size_t>(count)));
    throw_failure(out.Write(bytes.data(), count));
    begin += count;
  }
  throw_failure(out.Close());
}

}  // namespace

BucketWriter::BucketWriter(std::string bucket, std::shared_ptr<arrow::fs::S3FileSystem> files)
    : bucket_(std::move(bucket)), files_(std::move(files)) {}

void BucketWriter::write(const std::string& path, const RandomFile& content) {
  auto opened = files_->OpenOutputStream(bucket_ + "/" + path);
  throw_failure(opened.status());
  const std::shared_ptr<arrow::io::OutputStream> out = std::move(opened).ValueUnsafe();
  try {
    copy_into(*out, content);
  } catch (...) {
    static_cast<void>(out->Abort());  // else its destructor would complete the object
    throw;
  }
}

void BucketWriter::remove_file(const std::string& path) {
  ignore_missing(files_->DeleteFile(bucket_ + "/" + path));
}

void BucketWriter::remove_folder(const std::string& path) {
  ignore_missing(files_->DeleteDir(bucket_ + "/" + path));
}

}  // namespace satrap::data
