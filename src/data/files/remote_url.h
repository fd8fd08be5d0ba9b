#pragma once

#include <string>
#include <string_view>

namespace satrap::data {

/// A URL for a message: without what may be a password, between "://" and the last '@'.
std::string without_password(const std::string& url);

/// s3://bucket/key or hdfs://host:port/path
struct RemoteUrl {
  std::string scheme;     // "s3" or "hdfs"
  std::string authority;  // the bucket, or "host:port"
  std::string path;       // without the slash at its beginning; may be a glob

  /// Throws Error(kInvalidConfig) for text that is none, and for one with a user or password. The
  /// message shows it without_password().
  static RemoteUrl parse(const std::string& text);

  std::string with_path(std::string_view other) const {
    return scheme + "://" + authority + "/" + std::string(other);
  }
};

}  // namespace satrap::data
