#include "src/data/remote_url.h"

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

constexpr std::string_view kDefaultPort = ":9870";  // of a name node's WebHDFS

[[noreturn]] void refuse_remote_url(const std::string& text, const char* why) {
  throw Error(ErrorCode::kInvalidConfig,
              concat("'", text, "' ", why, "; files are written s3://bucket/key or ",
                     "hdfs://namenode:9870/path, and may be globs"));
}

}  // namespace

RemoteUrl RemoteUrl::parse(const std::string& text) {
  const std::size_t colon = text.find("://");
  const std::string scheme = text.substr(0, colon);
  if (colon == std::string::npos || (scheme != "s3" && scheme != "hdfs")) {
    refuse_remote_url(text, "is no URL of S3 or HDFS");
  }
  const std::size_t begin = colon + 3;
  const std::size_t slash = text.find('/', begin);
  RemoteUrl url{.scheme = scheme,
                .authority = text.substr(begin, slash - begin),
                .path = slash == std::string::npos ? "" : text.substr(slash + 1)};
  if (url.authority.find('@') != std::string::npos) {
    // Not the text, which may hold a password.
    throw Error(
        ErrorCode::kInvalidConfig,
        concat("a ", scheme, ":// URL has no user and no password: the environment has ", "them (",
               scheme == "s3" ? "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                                "AWS_PROFILE"
                              : "HADOOP_USER_NAME, SATRAP_HDFS_TOKEN",
               ")"));
  }
  if (url.authority.empty()) {
    refuse_remote_url(text, scheme == "s3" ? "names no bucket" : "names no name node");
  }
  if (url.path.empty()) refuse_remote_url(text, "names no file");
  if (scheme == "hdfs" && url.authority.find(':') == std::string::npos) {
    url.authority += kDefaultPort;
  }
  return url;
}

}  // namespace satrap::data
