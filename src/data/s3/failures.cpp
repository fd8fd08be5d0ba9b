#include "src/data/s3/failures.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "src/data/files/object_store.h"

namespace satrap::data {
namespace {

using Kind = StoreFailure::Kind;

constexpr const char* kNoSuchObject = "the bucket has no such object";

/// Names in Arrow's messages of what trying again does not help.
constexpr std::array<std::string_view, 13> kFinalErrors{
    "ACCESS_DENIED",      "NO_SUCH_BUCKET",        "NO_SUCH_KEY",
    "RESOURCE_NOT_FOUND", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH",
    "INVALID_SIGNATURE",  "UNRECOGNIZED_CLIENT",   "INVALID_CLIENT_TOKEN_ID",
    "EXPIRED_TOKEN",      "HTTP status 3",         "HTTP status 4",
    "HTTP status 501"};

/// A sign in Arrow's message, or in that about an answer, and what the user can do about it.
struct Advice {
  std::string_view sign;
  std::string_view text;
};
constexpr std::string_view kDenied =
    "; are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE) those of an account that "
    "may read the bucket (and write what a job writes), and does AWS_ENDPOINT_URL name its server?";
constexpr std::string_view kRegion = "; is the bucket in the region AWS_REGION?";
constexpr std::string_view kChecksums =
    "; a server that does not know the checksums of newer clients needs "
    "AWS_REQUEST_CHECKSUM_CALCULATION=when_required";
constexpr std::array<Advice, 13> kAdvice{
    {{"RequestTimeTooSkewed", "; is the clock of this machine right?"},
     {"ACCESS_DENIED", kDenied},
     {"INVALID_ACCESS_KEY_ID", kDenied},
     {"SIGNATURE_DOES_NOT_MATCH", kDenied},
     {"HTTP status 403", kDenied},
     {"answers 403", kDenied},
     {"answers 401", kDenied},
     {"HTTP status 301", kRegion},
     {"answers 301", kRegion},
     {"AuthorizationHeaderMalformed", kRegion},
     {"answers 400",
      "; is the bucket in the region AWS_REGION, and are the credentials still valid?"},
     {"ContentSHA256Mismatch", kChecksums},
     {"HTTP status 501", kChecksums}}};

bool has(std::string_view message, std::string_view sign) {
  return message.find(sign) != std::string_view::npos;
}

std::string with_advice(std::string message) {
  const auto* const advice =
      std::ranges::find_if(kAdvice, [&](const Advice& one) { return has(message, one.sign); });
  if (advice != kAdvice.end()) message += advice->text;
  return message;
}

/// The text of the first element of that name in XML whose elements have no attributes; "": there
/// is none.
std::string text_of(std::string_view xml, const std::string& name) {
  const std::string begin = "<" + name + ">", end = "</" + name + ">";
  const std::size_t from = xml.find(begin);
  if (from == std::string_view::npos) return "";
  const std::size_t to = xml.find(end, from);
  if (to == std::string_view::npos) return "";
  return std::string(xml.substr(from + begin.size(), to - from - begin.size()));
}

/// "the server answers 403, AccessDenied: why"
std::string description_of(const HttpAnswer& answer) {
  std::string text = "the server answers " + std::to_string(answer.status);
  const std::string code = text_of(answer.body, "Code");
  if (!code.empty()) text += ", " + code;
  const std::string message = text_of(answer.body, "Message");
  if (!message.empty()) text += ": " + message;
  if (!answer.problem.empty()) text += ", " + answer.problem;
  return text;
}

bool may_pass(const HttpAnswer& answer) {
  if (answer.status == 408 || answer.status == 429) return true;
  if (answer.status >= 500) return answer.status != 501;
  return text_of(answer.body, "Code") == "RequestTimeout";
}

}  // namespace

void throw_failure(const arrow::Status& status) {
  if (status.ok()) return;
  const std::string& message = status.message();
  if (status.IsInvalid() || status.IsNotImplemented()) {
    const bool is_key = has(message, "Empty path component");
    throw StoreFailure(
        Kind::kFinal,
        "Arrow's client of S3 refuses it (" + message + ")" +
            (is_key ? "; copy the object to a key without an empty part ('//')" : ""));
  }
  if (has(message, "Path does not exist")) throw StoreFailure(Kind::kMissing, kNoSuchObject);
  const bool is_final =
      std::ranges::any_of(kFinalErrors, [&](std::string_view name) { return has(message, name); });
  throw StoreFailure(is_final ? Kind::kFinal : Kind::kMayPass, with_advice(message));
}

void throw_s3_failure(const HttpAnswer& answer) {
  if (answer.status < 300) {
    const bool is_cut = !answer.problem.empty();
    throw StoreFailure(Kind::kMayPass, is_cut ? answer.problem : description_of(answer));
  }
  if (answer.status == 404 && text_of(answer.body, "Code") != "NoSuchBucket") {
    throw StoreFailure(Kind::kMissing, kNoSuchObject);
  }
  throw StoreFailure(may_pass(answer) ? Kind::kMayPass : Kind::kFinal,
                     with_advice(description_of(answer)));
}

}  // namespace satrap::data
