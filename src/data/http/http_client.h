#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <curl/curl.h>

#include "satrap/core/mutex.h"
#include "src/data/files/object_store.h"

namespace satrap::data {

/// Keeps libcurl ready. Outlives all clients.
class CurlInUse {
 public:
  CurlInUse() { curl_global_init(CURL_GLOBAL_ALL); }
  ~CurlInUse() { curl_global_cleanup(); }
  CurlInUse(const CurlInUse&) = delete;
  CurlInUse& operator=(const CurlInUse&) = delete;
};

/// "libcurl 7.88.1"
std::string curl_version_text();

/// Signs requests to S3 (AWS Signature Version 4).
struct S3Signer {
  std::string region;
  std::string key_id;
  std::string secret;
  std::string session_token;  // "": the credentials have none
};

/// A request that changes nothing.
struct HttpRequest {
  std::string url;
  bool wants_body = true;               // false: HEAD
  bool follows = true;                  // where it is sent
  bool uses_proxy = true;               // that of the environment
  std::string range = {};               // of bytes, "0-99"; "": all of them
  std::optional<S3Signer> signer = {};  // none: not signed
};

struct HttpAnswer {
  long status = 0;                             // 0: there is none
  std::string problem;                         // what the network did; "": nothing
  std::string body;                            // of an answer that is not 200 or 206, its beginning
  std::int64_t size = 0;                       // of the body
  std::int64_t modified_s = 0;                 // of what was asked for, since 1970; 0: not known
  std::string redirect;                        // URL where the sender of a request is sent
  std::map<std::string, std::string> headers;  // by names in small letters

  /// "": there is none.
  std::string header(const std::string& name) const;
};

/// Sends requests over connections that it keeps. Thread-safe.
class HttpClient {
 public:
  using Take = std::function<bool(const char* bytes, std::size_t size)>;  // false: too many

  /// A request ends when less than 1 KiB/s comes for `stall_s` seconds. `ca_file`: certificates in
  /// the place of the system's; "": those.
  explicit HttpClient(double stall_s, std::string ca_file = "");

  /// Gives the body of an answer 200 or 206 to `take` as it comes. Ends, with a problem, within
  /// about a second when is_cancelled() becomes true.
  HttpAnswer get(const HttpRequest& request, const IsCancelled& is_cancelled, const Take& take);

  /// Puts the body at the beginning of `out`. A longer one is a problem; the answer's `size` shows
  /// a shorter one.
  HttpAnswer get_into(std::span<char> out,
                      const HttpRequest& request,
                      const IsCancelled& is_cancelled);

  /// A request that changes something: PUT with the bytes of `content`, which may be null, or
  /// DELETE. Errors of the content pass. Does not follow where it is sent.
  HttpAnswer send(const char* method, const std::string& url, const RandomFile* content = nullptr);

 private:
  struct Close {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  using Handle = std::unique_ptr<CURL, Close>;

  Handle take_handle();
  void set_limits(CURL* curl) const;
  void perform(Handle handle, HttpAnswer& answer);

  const double stall_s_;
  const std::string ca_file_;
  Mutex mutex_;
  std::vector<Handle> idle_ SATRAP_GUARDED_BY(mutex_);  // with a connection that may be used again
};

/// As it stands in a URL, without slashes if `keeps_slashes` is false.
std::string url_encoded(const std::string& text, bool keeps_slashes);

}  // namespace satrap::data
