#include "src/data/hdfs/name_node.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/data/hdfs/name_node_writer.h"
#include "src/data/http/http_client.h"

namespace satrap::data {
namespace {

using Json = nlohmann::json;
using Kind = StoreFailure::Kind;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kMostListBytes = std::int64_t{1} << 30;

/// A field of an object; "": there is none, or it is no text (Java's null).
std::string text_in(const Json& object, const char* name) {
  const auto field = object.find(name);
  return field != object.end() && field->is_string() ? field->get<std::string>() : "";
}

/// "AccessControlException: Permission denied: user=..."; "": the answer is no such JSON.
std::string remote_exception(const std::string& body) {
  const Json answer = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return "";
  const auto exception = answer.find("RemoteException");
  if (exception == answer.end()) return "";
  std::string text = text_in(*exception, "exception");
  std::string message = text_in(*exception, "message");
  message.erase(std::min(message.find('\n'), message.size()));  // a trace of Java's stack
  if (!text.empty() && !message.empty()) text += ": ";
  return text + message;
}

StoreEntry entry_of(const Json& status, const std::string& folder) {
  const auto name = status.at("pathSuffix").get<std::string>();
  const auto bytes = status.at("length").get<std::int64_t>();
  const auto modified_ms = status.at("modificationTime").get<std::int64_t>();
  return {.path = folder.empty() || name.empty() ? folder + name : folder + "/" + name,
          .is_folder = status.at("type") == "DIRECTORY",
          .bytes = bytes,
          .modified_ns = modified_ms * kMillisecond,
          .version = std::to_string(bytes) + " bytes, modified at " + std::to_string(modified_ms) +
                     " ms, file " + std::to_string(status.value("fileId", std::int64_t{0}))};
}

class NameNode : public ObjectStore {
 public:
  NameNode(const std::string& address, double stall_s)
      : base_("http://" + address + "/webhdfs/v1/"), http_(stall_s), writer_(base_, http_) {}

  StoreEntry examine(const std::string& path, const IsCancelled& is_cancelled) override {
    return ask(path, "GETFILESTATUS", is_cancelled,
               [](const Json& answer) { return entry_of(answer.at("FileStatus"), ""); });
  }

  std::vector<StoreEntry> list(const std::string& folder,
                               const IsCancelled& is_cancelled) override {
    try {
      return ask(folder, "LISTSTATUS", is_cancelled, [&](const Json& answer) {
        std::vector<StoreEntry> entries;
        for (const Json& status : answer.at("FileStatuses").at("FileStatus")) {
          entries.push_back(entry_of(status, folder));
        }
        return entries;
      });
    } catch (const StoreFailure& failure) {
      if (failure.kind() == Kind::kMissing) return {};
      throw;
    }
  }

  void read(const StoreEntry& file,
            std::int64_t begin,
            std::span<char> out,
            const IsCancelled& is_cancelled) override {
    const HttpAnswer answer =
        http_.get_into(out,
                       {.url = url_of(file.path, "OPEN&offset=" + std::to_string(begin) +
                                                     "&length=" + std::to_string(out.size()))},
                       is_cancelled);
    if (answer.status != 200 || !answer.problem.empty()) throw_failure(answer);
    // A file that has shrunk ends early: look at it first.
    const std::string version = examine(file.path, is_cancelled).version;
    if (version != file.version) {
      throw StoreFailure(Kind::kChanged, file.version + " -> " + version);
    }
    if (answer.size == std::ssize(out)) return;
    throw StoreFailure(Kind::kMayPass, "the server has sent " + std::to_string(answer.size) +
                                           " of " + std::to_string(out.size()) + " bytes");
  }

  StoreWriter& writer() override { return writer_; }

 private:
  std::string url_of(const std::string& path, const std::string& operation) const {
    return base_ + url_encoded(path, /*keeps_slashes=*/true) + "?op=" + operation + identity();
  }

  /// Calls use(answer) with the JSON that an operation has for answer.
  template <class Use>
  std::invoke_result_t<Use, const Json&> ask(const std::string& path,
                                             const std::string& operation,
                                             const IsCancelled& is_cancelled,
                                             const Use& use) {
    std::string body;
    const HttpAnswer answer = http_.get({.url = url_of(path, operation)}, is_cancelled,
                                        [&](const char* bytes, std::size_t size) {
                                          body.append(bytes, size);
                                          return std::ssize(body) <= kMostListBytes;
                                        });
    if (answer.status != 200 || !answer.problem.empty()) throw_failure(answer);
    try {
      return use(Json::parse(body));
    } catch (const Json::exception&) {
      throw StoreFailure(Kind::kMayPass,
                         "the server's answer to " + operation + " is not that of WebHDFS");
    }
  }

  const std::string base_;
  HttpClient http_;
  NameNodeWriter writer_;
};

}  // namespace

std::string identity() {
  for (const auto& [name, key] :
       {std::pair("SATRAP_HDFS_TOKEN", "delegation"), std::pair("HADOOP_USER_NAME", "user.name")}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') {
      return std::string("&") + key + "=" + url_encoded(value, /*keeps_slashes=*/false);
    }
  }
  return "";
}

void throw_failure(const HttpAnswer& answer) {
  if (answer.status < 300) {
    throw StoreFailure(Kind::kMayPass, answer.problem);
  }
  const std::string exception = remote_exception(answer.body);
  if (exception.starts_with("FileNotFoundException")) {
    throw StoreFailure(Kind::kMissing, "HDFS has no such file");
  }
  std::string message = "the server answers " + std::to_string(answer.status);
  if (!exception.empty()) message += ", " + exception;
  if (!answer.problem.empty()) message += ", " + answer.problem;
  if (answer.status >= 500 || exception.starts_with("StandbyException") ||
      exception.starts_with("RetriableException")) {
    throw StoreFailure(Kind::kMayPass, message);
  }
  if (answer.body.find("Hadoop IPC port") != std::string::npos || exception.empty()) {
    message +=
        "; is this the port of the name node's web server (dfs.namenode.http-address, 9870 by "
        "default)? WebHDFS is read there, and not at its RPC port (8020, 9000)";
  } else if (answer.status == 401 || answer.status == 403) {
    message +=
        "; HADOOP_USER_NAME is the user that reads and writes, SATRAP_HDFS_TOKEN a delegation "
        "token";
  }
  throw StoreFailure(Kind::kFinal, message);
}

std::unique_ptr<ObjectStore> open_name_node(const std::string& address, double stall_s) {
  return std::make_unique<NameNode>(address, stall_s);
}

}  // namespace satrap::data
