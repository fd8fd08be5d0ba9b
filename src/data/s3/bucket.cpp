#include "src/data/s3/bucket.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arrow/filesystem/filesystem.h>
#include <arrow/filesystem/s3fs.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/util/key_value_metadata.h>

#include "src/data/s3/abandonable_calls.h"
#include "src/data/s3/bucket_writer.h"

namespace satrap::data {
namespace {

namespace fs = arrow::fs;
using Kind = StoreFailure::Kind;

constexpr std::int64_t kSecond = 1'000'000'000;

/// Names in Arrow's messages of what trying again does not help.
constexpr std::array<std::string_view, 13> kFinalErrors{
    "ACCESS_DENIED",      "NO_SUCH_BUCKET",        "NO_SUCH_KEY",
    "RESOURCE_NOT_FOUND", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH",
    "INVALID_SIGNATURE",  "UNRECOGNIZED_CLIENT",   "INVALID_CLIENT_TOKEN_ID",
    "EXPIRED_TOKEN",      "HTTP status 3",         "HTTP status 4",
    "HTTP status 501"};

/// What the user can do about an error, as far as it shows.
std::string_view advice_for(std::string_view message) {
  for (const std::string_view denied :
       {"ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "HTTP status 403"}) {
    if (message.find(denied) == std::string_view::npos) continue;
    return "; are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE) those of an account "
           "that may read the bucket (and write what a job writes), and does AWS_ENDPOINT_URL name "
           "its server?";
  }
  if (message.find("HTTP status 301") != std::string_view::npos) {
    return "; is the bucket in the region AWS_REGION?";
  }
  for (const std::string_view checksum : {"ContentSHA256Mismatch", "HTTP status 501"}) {
    if (message.find(checksum) == std::string_view::npos) continue;
    return "; a server that does not know the checksums of newer clients needs "
           "AWS_REQUEST_CHECKSUM_CALCULATION=when_required";
  }
  return "";
}

template <class Value>
Value value_of(arrow::Result<Value> result) {
  throw_failure(result.status());
  return std::move(result).ValueUnsafe();
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Without those retries of the SDK that know neither the deadline nor whether the reader waits.
class OneTry : public fs::S3RetryStrategy {
 public:
  bool ShouldRetry(const AWSErrorDetail&, int64_t) override { return false; }
  int64_t CalculateDelayBeforeNextRetry(const AWSErrorDetail&, int64_t) override { return 0; }
};

fs::S3Options options_for(const std::string& bucket, double stall_s) {
  fs::S3Options options = fs::S3Options::Defaults();
  options.retry_strategy = std::make_shared<OneTry>();
  options.connect_timeout = stall_s;
  options.request_timeout = stall_s;  // without progress
  options.background_writes = false;  // which would copy what is written
  options.allow_delayed_open = true;  // a small object is one request
  std::string endpoint = environment("AWS_ENDPOINT_URL_S3");
  if (endpoint.empty()) endpoint = environment("AWS_ENDPOINT_URL");
  if (const std::size_t end = endpoint.find("://"); end != std::string::npos) {
    options.scheme = endpoint.substr(0, end);
    endpoint.erase(0, end + 3);
  }
  while (endpoint.ends_with('/')) endpoint.pop_back();
  options.endpoint_override = endpoint;
  options.region = environment("AWS_REGION");
  if (options.region.empty()) options.region = environment("AWS_DEFAULT_REGION");
  if (options.region.empty()) {
    options.region = endpoint.empty() ? value_of(fs::ResolveS3BucketRegion(bucket)) : "us-east-1";
  }
  return options;
}

/// Entries of a listing have fractions of seconds, and those of one file have not.
std::int64_t whole_seconds(fs::TimePoint time) {
  const auto ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  return ns / kSecond * kSecond;
}

/// The time of "2026-11-27T03:49:21Z"; none if the text is no such time.
std::optional<std::int64_t> time_of(const std::string& text) {
  std::tm time{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time) == nullptr) return std::nullopt;
  return timegm(&time) * kSecond;
}

/// What one request says about an object.
struct Description {
  std::int64_t bytes;
  std::optional<std::int64_t> modified_ns;
  std::string tag;  // ETag; "": there is none

  /// For people and for comparison.
  std::string version() const {
    return std::to_string(bytes) + " bytes" + (tag.empty() ? "" : ", ETag " + tag);
  }
};

class Bucket : public Store {
 public:
  Bucket(std::string name, double stall_s)
      : name_(std::move(name)),
        files_(value_of(fs::S3FileSystem::Make(options_for(name_, stall_s)))),
        writer_(name_, files_) {}

  StoreEntry examine(const std::string& path, const IsCancelled& is_cancelled) override {
    return calls_.run(is_cancelled, [this, path] { return entry_at(path); });
  }

  std::vector<StoreEntry> list(const std::string& folder,
                               const IsCancelled& is_cancelled) override {
    return calls_.run(is_cancelled, [this, folder] { return entries_in(folder); });
  }

  void read(const StoreEntry& file,
            std::int64_t begin,
            std::span<char> out,
            const IsCancelled& is_cancelled) override {
    // Whoever owns `out` may leave while Arrow still fills it.
    const std::shared_ptr<Bytes> bytes = take_buffer(out.size());
    calls_.run(is_cancelled, [this, file, begin, bytes, size = out.size()] {
      read_range(file, begin, std::span(*bytes).first(size));
    });
    std::memcpy(out.data(), bytes->data(), out.size());
    const std::lock_guard lock(mutex_);
    buffers_.push_back(bytes);
  }

  StoreWriter& writer() override { return writer_; }

 private:
  using Bytes = std::vector<char>;

  /// One that no call uses.
  std::shared_ptr<Bytes> take_buffer(std::size_t size) {
    std::shared_ptr<Bytes> buffer = std::make_shared<Bytes>();
    {
      const std::lock_guard lock(mutex_);
      if (!buffers_.empty()) {
        buffer = std::move(buffers_.back());
        buffers_.pop_back();
      }
    }
    buffer->resize(std::max(buffer->size(), size));
    return buffer;
  }

  StoreEntry entry_at(const std::string& path) const {
    const fs::FileInfo info = value_of(files_->GetFileInfo(name_ + "/" + path));
    if (info.type() == fs::FileType::NotFound) {
      throw StoreFailure(Kind::kMissing, "the bucket has no such object");
    }
    StoreEntry entry = entry_of(info);
    if (entry.is_folder) return entry;
    // The object may have been replaced since: all that is known of it comes from one request.
    const Description now = describe(path);
    entry.bytes = now.bytes;
    entry.modified_ns = now.modified_ns.value_or(entry.modified_ns);
    entry.version = now.version();
    return entry;
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

  void read_range(const StoreEntry& file, std::int64_t begin, std::span<char> out) const {
    fs::FileInfo info(name_ + "/" + file.path, fs::FileType::File);
    info.set_size(file.bytes);  // which saves asking for it
    const auto input = value_of(files_->OpenInputFile(info));
    // Arrow reports as many bytes as it was asked for, whatever the server sends, but leaves what
    // did not come as it was. So the last byte is marked; where the mark may also be what came, the
    // bytes are read once more with another.
    bool is_filled = false;
    for (const char mark : {'\x5A', '\xA5'}) {
      if (is_filled) break;
      out.back() = mark;
      throw_failure(input->ReadAt(begin, std::ssize(out), out.data()).status());
      is_filled = out.back() != mark;
    }
    if (!is_filled) {
      throw StoreFailure(Kind::kMayPass, "the server has sent fewer than the " +
                                             std::to_string(out.size()) + " bytes asked for");
    }
    const std::string version = describe(file.path).version();
    if (version == file.version) return;
    throw StoreFailure(Kind::kChanged, file.version + " -> " + version);
  }

  StoreEntry entry_of(const fs::FileInfo& info) const {
    return {.path = info.path().substr(name_.size() + 1),
            .is_folder = info.type() == fs::FileType::Directory,
            .bytes = info.size(),
            .modified_ns = whole_seconds(info.mtime())};
  }

  /// By one request.
  Description describe(const std::string& path) const {
    const auto input = value_of(files_->OpenInputFile(name_ + "/" + path));
    const auto metadata = value_of(input->ReadMetadata());
    Description object{.bytes = value_of(input->GetSize()), .modified_ns = {}, .tag = ""};
    if (metadata == nullptr) return object;
    object.tag = metadata->Get("ETag").ValueOr("");
    object.modified_ns = time_of(metadata->Get("Last-Modified").ValueOr(""));
    return object;
  }

  const std::string name_;
  const std::shared_ptr<fs::S3FileSystem> files_;
  BucketWriter writer_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Bytes>> buffers_;  // that no call uses
  AbandonableCalls calls_;                       // the last member: its threads use the others
};

}  // namespace

void throw_failure(const arrow::Status& status) {
  if (status.ok()) return;
  const std::string& message = status.message();
  if (status.IsInvalid() || status.IsNotImplemented()) {
    const bool is_key = message.find("Empty path component") != std::string::npos;
    throw StoreFailure(
        Kind::kFinal,
        "Arrow's client of S3 refuses it (" + message + ")" +
            (is_key ? "; copy the object to a key without an empty part ('//')" : ""));
  }
  if (message.find("Path does not exist") != std::string::npos) {
    throw StoreFailure(Kind::kMissing, "the bucket has no such object");
  }
  const bool is_final = std::ranges::any_of(
      kFinalErrors, [&](std::string_view name) { return message.find(name) != std::string::npos; });
  throw StoreFailure(is_final ? Kind::kFinal : Kind::kMayPass,
                     message + std::string(advice_for(message)));
}

std::unique_ptr<Store> open_bucket(const std::string& bucket, double stall_s) {
  try {
    return std::make_unique<Bucket>(bucket, stall_s);
  } catch (const StoreFailure& failure) {
    throw StoreFailure(failure.kind(),
                       std::string("cannot connect to the bucket: ") + failure.what() +
                           "; AWS_REGION is the region of the bucket, AWS_ENDPOINT_URL the server "
                           "that has it if that is not Amazon's (http://host:port)");
  }
}

}  // namespace satrap::data
