#include "src/data/s3/endpoint.h"

#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "src/data/s3/failures.h"

namespace satrap::data {
namespace {

namespace fs = arrow::fs;

/// Amazon's domains, by the beginnings of the names of their regions; the last is for all others.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kDomains{
    {{"cn-", "amazonaws.com.cn"},
     {"eusc-", "amazonaws.eu"},
     {"us-iso-", "c2s.ic.gov"},
     {"us-isob-", "sc2s.sgov.gov"},
     {"us-isof-", "csp.hci.ic.gov"},
     {"eu-isoe-", "cloud.adc-e.uk"},
     {"", "amazonaws.com"}}};

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

std::string amazon_domain(std::string_view region) {
  for (const auto& [prefix, domain] : kDomains) {
    if (region.starts_with(prefix)) return std::string(domain);
  }
  return "";
}

/// Whether the name of a bucket may be that of a host for which Amazon has a certificate.
bool can_be_host(std::string_view bucket) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return bucket.size() >= 3 && bucket.size() <= 63 &&
         bucket.find_first_not_of(kLetters) == std::string_view::npos && !bucket.starts_with('-') &&
         !bucket.ends_with('-');
}

}  // namespace

fs::S3Options options_for(const std::string& bucket, double stall_s) {
  fs::S3Options options = fs::S3Options::Defaults();
  options.retry_strategy = std::make_shared<OneTry>();
  options.connect_timeout = stall_s;
  options.request_timeout = stall_s;  // without progress
  options.background_writes = false;  // which would copy what is written
  options.allow_delayed_open = true;  // a small object is one request
  options.tls_ca_file_path = environment("AWS_CA_BUNDLE");
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

std::string url_of_bucket(const std::string& bucket, const fs::S3Options& options) {
  const std::string scheme = options.scheme + "://";
  const std::string& server = options.endpoint_override;
  const std::string path = "/" + url_encoded(bucket, /*keeps_slashes=*/false);
  if (!server.empty()) return scheme + server + path;
  const std::string amazon = "s3." + options.region + "." + amazon_domain(options.region);
  return can_be_host(bucket) ? scheme + bucket + "." + amazon : scheme + amazon + path;
}

std::optional<S3Signer> signer_of(const fs::S3Options& options) {
  S3Signer signer{.region = options.region, .key_id = "", .secret = "", .session_token = ""};
  do {
    signer.key_id = options.GetAccessKey();
    signer.secret = options.GetSecretKey();
    signer.session_token = options.GetSessionToken();
  } while (signer.key_id != options.GetAccessKey());  // another thread has got new ones
  if (signer.key_id.empty()) return std::nullopt;
  return signer;
}

}  // namespace satrap::data
