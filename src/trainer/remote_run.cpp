#include "src/trainer/remote_run.h"

#include <array>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <optional>
#include <random>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"

namespace satrap::trainer {
namespace {

constexpr const char* kOwnerFile = "owner.json";
constexpr const char* kEventFolder = "tensorboard";
constexpr const char* kCheckpointFolder = "checkpoints";

std::string random_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// This process, unlike any other.
std::string describe_owner(const std::string& id) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return nlohmann::ordered_json{
             {"host", host.data()},
             {"pid", ::getpid()},
             {"since", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
             {"id", id}}
             .dump() +
         "\n";
}

/// The lines of a file that are complete: another thread may be writing the last one.
std::string complete_lines(const std::string& path) {
  std::string text = read_file(path);
  text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
  return text;
}

/// Whether the file has that text, and maybe more.
bool goes_on_from(const std::string& path, const std::string& text) {
  return !text.empty() && std::filesystem::exists(path) && read_file(path).starts_with(text);
}

}  // namespace

RemoteRun::RemoteRun(const std::string& url)
    : folder_(url), owner_id_(random_id()), owner_(describe_owner(owner_id_)) {}

checkpoint::RemoteCheckpoints RemoteRun::checkpoints() const {
  return checkpoint::RemoteCheckpoints(folder_.url_of(kCheckpointFolder));
}

std::string RemoteRun::find_run() const {
  for (const auto& [name, is_folder] : folder_.list("")) {
    const bool is_ours = is_folder ? name == kCheckpointFolder || name == kEventFolder
                                   : name == kRunConfig || name == kRunMetrics ||
                                         name == kRunSummary || name == kRunReport;
    if (is_ours) return name;
  }
  return "";
}

void RemoteRun::take_over() const { folder_.put_text(owner_, kOwnerFile); }

void RemoteRun::require_owned() const {
  const std::optional<std::string> owner = folder_.find_text(kOwnerFile);
  if (owner == owner_) return;
  is_lost_ = true;
  throw Error(
      ErrorCode::kIo,
      concat("run_dir: '", folder_.url(), "' has been taken over by another job (", kOwnerFile,
             ": ", owner ? owner->substr(0, owner->find('\n')) : "it is not there",
             "), which was started after this one"));
}

void RemoteRun::bring(const std::string& root) const {
  remove_all(root + "/" + kRunReport);
  for (const char* name : {kRunConfig, kRunMetrics, kRunSummary}) {
    const std::string path = root + "/" + name;
    const std::optional<std::string> text = folder_.find_text(name);
    if (name == kRunMetrics) {
      if (text && goes_on_from(path, *text)) continue;
      remove_all(root + "/" + kEventFolder);  // of another run, or the store has them
    }
    if (text) {
      write_file_atomic(path, *text);
    } else {
      remove_all(path);
    }
  }
}

void RemoteRun::clear() const {
  checkpoints().remove_all();
  folder_.remove_folder(kCheckpointFolder);
  folder_.remove_folder(kEventFolder);
  for (const char* name : {kRunMetrics, kRunSummary, kRunReport, kRunConfig}) {
    folder_.remove_file(name);
  }
}

void RemoteRun::write_config(const std::string& yaml) const { folder_.put_text(yaml, kRunConfig); }

std::vector<std::string> RemoteRun::events() const {
  std::vector<std::string> names;
  for (const auto& [name, ignored] : folder_.list(kEventFolder)) names.push_back(name);
  return names;
}

void RemoteRun::upload(const std::string& root) const {
  namespace fs = std::filesystem;
  folder_.put_text(complete_lines(root + "/" + kRunMetrics), kRunMetrics);
  const std::string summary = root + "/" + kRunSummary;
  if (fs::exists(summary)) folder_.put_text(read_file(summary), kRunSummary);
  const std::string events = root + "/" + kEventFolder;
  if (!fs::exists(events)) return;
  for (const std::string& name : list_directory(events)) {
    folder_.put_text(read_file(events + "/" + name), concat(kEventFolder, "/", name));
  }
}

}  // namespace satrap::trainer
