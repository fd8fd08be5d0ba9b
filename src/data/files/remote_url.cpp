#include "src/data/files/remote_url.h"

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

constexpr std::string_view kDefaultPort = ":9870";  // of a name node's WebHDFS

[[noreturn]] void refuse_remote_url(const std::string& text, const char* why) {
  throw Error(ErrorCode::kInvalidConfig, concat("'", without_password(text), "' ", why,
                                                "; files are written s3://bucket/key or ",
                                                "hdfs://namenode:9870/path, and may be globs"));
}

/// Whether what stands before the first slash, `authority`, has a user, or begins one whose
/// password has a slash: an '@' in the path of a file is no sign of it.
bool has_user(const std::string& text, const std::string& scheme, const std::string& authority) {
  if (authority.find('@') != std::string::npos) return true;
  const std::size_t colon = authority.find(':');
  if (colon == std::string::npos || text.find('@') == std::string::npos) return false;
  const std::string port = authority.substr(colon + 1);
  return scheme == "s3" || port.empty() ||
         port.find_first_not_of("0123456789") != std::string::npos;
}

}  // namespace

std::string without_password(const std::string& url) {
  const std::size_t colon = url.find("://");
  const std::size_t at = url.rfind('@');
  if (colon == std::string::npos || at == std::string::npos || at < colon) return url;
  return url.substr(0, colon + 3) + "***" + url.substr(at);
}

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
  if (has_user(text, scheme, url.authority)) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("'", without_password(text), "': a URL of ", scheme,
                       ":// has no user and no password: the environment has them (",
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
