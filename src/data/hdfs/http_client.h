#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <curl/curl.h>

#include "src/data/store.h"

namespace satrap::data {

struct HttpAnswer {
  long status = 0;        // 0: there is none
  std::string problem;    // what the network did; "": nothing
  std::string body;       // of an answer that is not 200, its beginning
  std::int64_t size = 0;  // of the body
  std::string redirect;   // URL where the sender of a request is sent; "": nowhere
};

/// Sends requests over connections that it keeps. Thread-safe.
class HttpClient {
 public:
  using Take = std::function<bool(const char* bytes, std::size_t size)>;  // false: too many

  /// A request ends when less than 1 KiB/s comes for `stall_s` seconds.
  explicit HttpClient(double stall_s) : stall_s_(stall_s) {}

  /// Follows where it is sent. Gives the body of an answer 200 to `take` as it comes. Ends, with a
  /// problem, within about a second when is_cancelled() becomes true.
  HttpAnswer get(const std::string& url, const IsCancelled& is_cancelled, const Take& take);

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
  std::mutex mutex_;
  std::vector<Handle> idle_;  // with a connection that may be used again
};

/// As it stands in a URL, without slashes if `keeps_slashes` is false.
std::string url_encoded(const std::string& text, bool keeps_slashes);

}  // namespace satrap::data
