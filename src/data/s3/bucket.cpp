#include "src/data/s3/bucket.h"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arrow/filesystem/filesystem.h>
#include <arrow/filesystem/s3fs.h>

#include "src/data/http/http_client.h"
#include "src/data/s3/abandonable_calls.h"
#include "src/data/s3/bucket_writer.h"
#include "src/data/s3/endpoint.h"
#include "src/data/s3/failures.h"

namespace satrap::data {
namespace {

namespace fs = arrow::fs;
using Kind = StoreFailure::Kind;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr const char* kNoRanges =
    "the server sends the whole object where a range of it is asked for (status 200, not 206); "
    "satrap reads from servers that know the header Range";

/// Entries of a listing have fractions of seconds, and those of one file have not.
std::int64_t whole_seconds(fs::TimePoint time) {
  const auto ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  return ns / kSecond * kSecond;
}

/// For people and for comparison.
std::string version_of(std::int64_t bytes, const std::string& tag) {
  return std::to_string(bytes) + " bytes" + (tag.empty() ? "" : ", ETag " + tag);
}

/// Digits alone; none if it is no such text.
std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

/// "bytes 0-99/1234" and "bytes */1234" have a size of 1234.
std::optional<std::int64_t> size_in_range(std::string_view content_range) {
  return number_in(content_range.substr(content_range.rfind('/') + 1));
}

/// Objects that stand for folders, as some tools create them.
bool is_folder_object(const HttpAnswer& answer) {
  return answer.header("content-type").starts_with("application/x-directory");
}

/// Objects are read by libcurl, since a try of Arrow's client can neither be ended nor say how many
/// bytes have come; it lists and writes, and knows the credentials.
class Bucket : public ObjectStore {
 public:
  Bucket(std::string name, const fs::S3Options& options, double stall_s)
      : name_(std::move(name)),
        options_(options),
        url_(url_of_bucket(name_, options)),
        http_(stall_s, options.tls_ca_file_path),
        files_(value_of(fs::S3FileSystem::Make(options))),
        writer_(name_, files_) {}

  StoreEntry examine(const std::string& path, const IsCancelled& is_cancelled) override {
    if (!path.ends_with('/')) {
      HttpRequest request = request_for(path, is_cancelled);
      request.wants_body = false;
      const HttpAnswer answer = http_.get(request, is_cancelled, {});
      if (answer.status != 404 && (answer.status != 200 || !answer.problem.empty())) {
        throw_s3_failure(answer);
      }
      if (answer.status == 200 && !is_folder_object(answer)) return entry_of(path, answer);
    }
    return calls_.run(is_cancelled, [this, path] { return folder_at(path); });
  }

  std::vector<StoreEntry> list(const std::string& folder,
                               const IsCancelled& is_cancelled) override {
    return calls_.run(is_cancelled, [this, folder] { return entries_in(folder); });
  }

  void read(const StoreEntry& file,
            std::int64_t begin,
            std::span<char> out,
            const IsCancelled& is_cancelled) override {
    HttpRequest request = request_for(file.path, is_cancelled);
    request.range = std::to_string(begin) + "-" + std::to_string(begin + std::ssize(out) - 1);
    const HttpAnswer answer = http_.get_into(out, request, is_cancelled);
    if (answer.status == 416) {
      throw StoreFailure(Kind::kChanged, file.version + " -> one that ends before");
    }
    const bool is_all = answer.status == 200 && begin == 0 && std::ssize(out) == file.bytes;
    if (answer.status == 200 && !is_all) throw StoreFailure(Kind::kFinal, kNoRanges);
    if ((answer.status != 206 && !is_all) || !answer.problem.empty()) throw_s3_failure(answer);
    const std::string range = answer.header("content-range");
    const std::optional<std::int64_t> bytes = is_all ? answer.size : size_in_range(range);
    if (!bytes) throw StoreFailure(Kind::kMayPass, "the server does not say what it has sent");
    const std::string version = version_of(*bytes, answer.header("etag"));
    if (version != file.version) {
      throw StoreFailure(Kind::kChanged, file.version + " -> " + version);
    }
    const bool is_range = is_all || range.starts_with("bytes " + request.range + "/");
    if (is_range && answer.size == std::ssize(out)) return;
    throw StoreFailure(Kind::kMayPass, "the server has sent " + std::to_string(answer.size) +
                                           " of " + std::to_string(out.size()) +
                                           " bytes, which it calls " + range);
  }

  StoreWriter& writer() override { return writer_; }

 private:
  HttpRequest request_for(const std::string& path, const IsCancelled& is_cancelled) {
    return {.url = url_ + "/" + url_encoded(path, /*keeps_slashes=*/true),
            .follows = false,
            .uses_proxy = false,  // as Arrow's client
            .signer = calls_.run(is_cancelled, [this] { return signer_of(options_); })};
  }

  static StoreEntry entry_of(const std::string& path, const HttpAnswer& answer) {
    const auto bytes = number_in(answer.header("content-length"));
    if (!bytes)
      throw StoreFailure(Kind::kMayPass, "the server does not say how long the object is");
    return {.path = path,
            .bytes = *bytes,
            .modified_ns = answer.modified_s * kSecond,
            .version = version_of(*bytes, answer.header("etag"))};
  }

  StoreEntry folder_at(const std::string& path) const {
    const StoreEntry entry = entry_of(value_of(files_->GetFileInfo(name_ + "/" + path)));
    if (entry.is_folder) return entry;
    throw StoreFailure(Kind::kMissing, "the bucket has no such object");
  }

  std::vector<StoreEntry> entries_in(const std::string& folder) const {
    fs::FileSelector selector;
    selector.base_dir = folder.empty() ? name_ : name_ + "/" + folder;
    selector.allow_not_found = true;
    std::vector<StoreEntry> entries;
    for (const fs::FileInfo& info : value_of(files_->GetFileInfo(selector))) {
      entries.push_back(entry_of(info));
    }
    return entries;
  }

  StoreEntry entry_of(const fs::FileInfo& info) const {
    if (!info.path().starts_with(name_ + "/")) {
      throw StoreFailure(Kind::kFinal,
                         "the store lists '" + info.path() + "', which is not in the bucket");
    }
    return {.path = info.path().substr(name_.size() + 1),
            .is_folder = info.type() == fs::FileType::Directory,
            .bytes = info.size(),
            .modified_ns = whole_seconds(info.mtime())};
  }

  const std::string name_;
  const fs::S3Options options_;
  const std::string url_;
  HttpClient http_;
  const std::shared_ptr<fs::S3FileSystem> files_;
  BucketWriter writer_;
  AbandonableCalls calls_;  // the last member: its threads use the others
};

}  // namespace

std::unique_ptr<ObjectStore> open_bucket(const std::string& bucket, double stall_s) {
  try {
    return std::make_unique<Bucket>(bucket, options_for(bucket, stall_s), stall_s);
  } catch (const StoreFailure& failure) {
    throw StoreFailure(failure.kind(),
                       std::string("cannot connect to the bucket: ") + failure.what() +
                           "; AWS_REGION is the region of the bucket, AWS_ENDPOINT_URL the server "
                           "that has it if that is not Amazon's (http://host:port)");
  }
}

}  // namespace satrap::data
