#include "src/data/http/http_client.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

namespace satrap::data {
namespace {

constexpr std::size_t kMostErrorBytes = std::size_t{16} << 10;
constexpr long kMostRedirects = 3;
constexpr long kLeastBytesPerSecond = 1024;
constexpr std::string_view kUnreserved =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

using Headers = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

void append(Headers& headers, const std::string& line) {
  curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  if (!headers) headers.reset(longer);  // else the list has kept its beginning
}

/// Sets the signature of a request without a body, all of whose headers are signed. The result must
/// outlive the request.
Headers sign(CURL* curl, const S3Signer& signer) {
  const std::string kind = "aws:amz:" + signer.region + ":s3";
  if (curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, kind.c_str()) != CURLE_OK) {
    throw StoreFailure(StoreFailure::Kind::kFinal,
                       curl_version_text() + " was built without AWS signatures (AWS_SIGV4)");
  }
  curl_easy_setopt(curl, CURLOPT_USERNAME, signer.key_id.c_str());
  curl_easy_setopt(curl, CURLOPT_PASSWORD, signer.secret.c_str());
  Headers headers(nullptr, curl_slist_free_all);
  append(headers, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
  if (!signer.session_token.empty()) {
    append(headers, "x-amz-security-token: " + signer.session_token);
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  return headers;
}

/// The headers of the last answer.
std::map<std::string, std::string> headers_of(CURL* curl) {
  std::map<std::string, std::string> headers;
  curl_header* header = nullptr;
  while ((header = curl_easy_nextheader(curl, CURLH_HEADER, -1, header)) != nullptr) {
    std::string name = header->name;
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    headers[name] = header->value;
  }
  return headers;
}

struct Receiver {
  CURL* handle;
  const HttpClient::Take& take;
  HttpAnswer& answer;
};

std::size_t receive(char* bytes, std::size_t, std::size_t size, void* data) {
  const Receiver& receiver = *static_cast<Receiver*>(data);
  HttpAnswer& answer = receiver.answer;
  curl_easy_getinfo(receiver.handle, CURLINFO_RESPONSE_CODE, &answer.status);
  answer.size += static_cast<std::int64_t>(size);
  if (answer.status == 200 || answer.status == 206) return receiver.take(bytes, size) ? size : 0;
  answer.body.append(bytes, std::min(size, kMostErrorBytes - answer.body.size()));
  return size;
}

struct Sender {
  const RandomFile* content;
  std::int64_t sent = 0;
  std::exception_ptr error = nullptr;
};

std::size_t hand_over(char* bytes, std::size_t, std::size_t size, void* data) {
  Sender& sender = *static_cast<Sender*>(data);
  if (sender.content == nullptr) return 0;
  const std::int64_t left = sender.content->size() - sender.sent;
  const std::int64_t count = std::min(left, static_cast<std::int64_t>(size));
  try {
    sender.content->read(sender.sent, std::span(bytes, static_cast<std::size_t>(count)));
  } catch (...) {  // libcurl is C
    sender.error = std::current_exception();
    return CURL_READFUNC_ABORT;
  }
  sender.sent += count;
  return static_cast<std::size_t>(count);
}

bool is_there(const char* path) {
  std::error_code unreadable;
  return std::filesystem::exists(path, unreadable);
}

/// This system's certificates, if they are not where libcurl looks, which in a package may come
/// from a system of another kind; "" if they are, or are nowhere.
std::string certificates_elsewhere() {
  const char* const expected = curl_version_info(CURLVERSION_NOW)->cainfo;
  if (expected == nullptr || is_there(expected)) return "";
  for (const char* const path : {"/etc/ssl/certs/ca-certificates.crt",  // Debian, Arch
                                 "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, RHEL
                                 "/etc/ssl/ca-bundle.pem",              // openSUSE
                                 "/etc/ssl/cert.pem"}) {                // Alpine
    if (is_there(path)) return path;
  }
  return "";
}

/// libcurl calls it at least once a second; not 0 ends the transfer.
int asks_to_end(void* data, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const IsCancelled& is_cancelled = *static_cast<const IsCancelled*>(data);
  return is_cancelled && is_cancelled() ? 1 : 0;
}

}  // namespace

std::string curl_version_text() {
  return std::string("libcurl ") + curl_version_info(CURLVERSION_NOW)->version;
}

std::string HttpAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

HttpClient::HttpClient(double stall_s, std::string ca_file)
    : stall_s_(stall_s),
      ca_file_(ca_file.empty() ? certificates_elsewhere() : std::move(ca_file)) {}

HttpClient::Handle HttpClient::take_handle() {
  const MutexLock lock(mutex_);
  if (idle_.empty()) {
    Handle handle(curl_easy_init());
    if (!handle) throw std::bad_alloc();
    return handle;
  }
  Handle handle = std::move(idle_.back());
  idle_.pop_back();
  return handle;
}

void HttpClient::set_limits(CURL* curl) const {
  curl_easy_reset(curl);  // what the request before it has set; keeps the connection
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  if (!ca_file_.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file_.c_str());
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, std::lround(stall_s_ * 1000));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerSecond);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, std::lround(std::ceil(stall_s_)));
}

void HttpClient::perform(Handle handle, HttpAnswer& answer) {
  CURL* const curl = handle.get();
  std::array<char, CURL_ERROR_SIZE> problem{};
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem.data());
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  if (code != CURLE_OK) {
    answer.problem = code == CURLE_ABORTED_BY_CALLBACK ? kNoLongerAwaited
                     : problem.front() == '\0'         ? curl_easy_strerror(code)
                                                       : problem.data();
    return;  // and closes the connection
  }
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  const char* redirect = nullptr;
  curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &redirect);
  if (redirect != nullptr) answer.redirect = redirect;
  answer.headers = headers_of(curl);
  curl_off_t modified_s = -1;
  curl_easy_getinfo(curl, CURLINFO_FILETIME_T, &modified_s);
  answer.modified_s = std::max<std::int64_t>(modified_s, 0);
  const MutexLock lock(mutex_);
  idle_.push_back(std::move(handle));
}

HttpAnswer HttpClient::get(const HttpRequest& request,
                           const IsCancelled& is_cancelled,
                           const Take& take) {
  Handle handle = take_handle();
  CURL* const curl = handle.get();
  HttpAnswer answer;
  Receiver receiver{.handle = curl, .take = take, .answer = answer};
  set_limits(curl);
  const Headers headers =
      request.signer ? sign(curl, *request.signer) : Headers(nullptr, curl_slist_free_all);
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  if (!request.range.empty()) curl_easy_setopt(curl, CURLOPT_RANGE, request.range.c_str());
  curl_easy_setopt(curl, CURLOPT_NOBODY, request.wants_body ? 0L : 1L);
  if (!request.uses_proxy) curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, request.follows ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMostRedirects);
  curl_easy_setopt(curl, CURLOPT_FILETIME, 1L);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 512L << 10);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, asks_to_end);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &is_cancelled);
  perform(std::move(handle), answer);
  return answer;
}

HttpAnswer HttpClient::get_into(std::span<char> out,
                                const HttpRequest& request,
                                const IsCancelled& is_cancelled) {
  std::span<char> rest = out;
  bool is_longer = false;
  HttpAnswer answer = get(request, is_cancelled, [&](const char* bytes, std::size_t size) {
    is_longer = size > rest.size();
    if (is_longer) return false;
    std::memcpy(rest.data(), bytes, size);
    rest = rest.subspan(size);
    return true;
  });
  if (is_longer) {
    answer.problem =
        "the server has sent more than the " + std::to_string(out.size()) + " bytes asked for";
  }
  return answer;
}

HttpAnswer HttpClient::send(const char* method, const std::string& url, const RandomFile* content) {
  Handle handle = take_handle();
  CURL* const curl = handle.get();
  HttpAnswer answer;
  const Take ignore = [](const char*, std::size_t) { return true; };
  Receiver receiver{.handle = curl, .take = ignore, .answer = answer};
  Sender sender{.content = content};
  Headers headers(nullptr, curl_slist_free_all);
  append(headers, "Content-Type: application/octet-stream");
  set_limits(curl);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
  curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE,
                   static_cast<curl_off_t>(content == nullptr ? 0 : content->size()));
  curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
  curl_easy_setopt(curl, CURLOPT_READFUNCTION, hand_over);
  curl_easy_setopt(curl, CURLOPT_READDATA, &sender);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &receiver);
  perform(std::move(handle), answer);
  if (sender.error) std::rethrow_exception(sender.error);
  return answer;
}

std::string url_encoded(const std::string& text, bool keeps_slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (kUnreserved.find(c) != std::string_view::npos || (keeps_slashes && c == '/')) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return encoded;
}

}  // namespace satrap::data
