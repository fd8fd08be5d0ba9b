#include "src/data/remote_file.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <fnmatch.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/text.h"
#include "src/data/file_list.h"
#include "src/data/remote_url.h"
#include "src/data/store.h"
#include "src/data/store_libraries.h"

namespace satrap::data {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::int64_t kRemotePieceBytes = std::int64_t{8} << 20;
constexpr milliseconds kFirstPause{100}, kLongestPause{5000}, kNap{50};
/// How long a request is tried again, and how long one may make no progress.
constexpr const char* kTimeoutName = "SATRAP_REMOTE_TIMEOUT";
constexpr const char* kStallName = "SATRAP_REMOTE_STALL";
constexpr double kDefaultTimeoutS = 60.0, kDefaultStallS = 15.0, kLeastStallS = 1.0;

/// A duration in the environment; `otherwise` if there is none.
double seconds_of(const char* name, double otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  try {
    return parse_duration(text);
  } catch (const Error& error) {
    throw Error(error.code(), concat("the environment's ", name, ": ", error.what()));
  }
}

[[noreturn]] void refuse(const std::string& url, const StoreFailure& failure) {
  switch (failure.kind()) {
    case StoreFailure::Kind::kMissing:
      throw Error(ErrorCode::kIo, concat("data file '", url, "': ", failure.what()));
    case StoreFailure::Kind::kChanged:
      throw Error(ErrorCode::kIo,
                  concat("data file '", url, "' has changed while it was read (", failure.what(),
                         "): leave the files of a job as they are, and start again"));
    default:
      throw Error(ErrorCode::kIo, concat("cannot read '", url, "': ", failure.what()));
  }
}

/// Sleeps until `end`, or until the reader is cancelled.
void pause_until(Clock::time_point end, const IsCancelled& is_cancelled) {
  while (Clock::now() < end && !(is_cancelled && is_cancelled())) {
    std::this_thread::sleep_for(std::min<Clock::duration>(kNap, end - Clock::now()));
  }
}

/// How long one request may take. A slower one may be stuck: there is time for a second.
double longest_try_s(double timeout_s) {
  return std::max({timeout_s / 2, kLeastStallS, seconds_of(kStallName, kDefaultStallS)});
}

Clock::duration as_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// Calls call(is_over) until it succeeds, its failure will not pass, or time is over; is_over()
/// says when to end a try. Pauses double, less a part that differs between files, so that not all
/// readers come back at once.
template <class Call>
decltype(auto) tried_again(const std::string& url,
                           const IsCancelled& is_cancelled,
                           const Call& call) {
  const double timeout_s = seconds_of(kTimeoutName, kDefaultTimeoutS);
  const double try_s = longest_try_s(timeout_s);
  const auto deadline = Clock::now() + as_duration(timeout_s);
  milliseconds pause = kFirstPause;
  for (std::uint64_t tries = 1;; ++tries) {
    const auto end_of_try = Clock::now() + as_duration(try_s);
    bool is_late = false;
    const IsCancelled is_over = [&] {
      is_late = is_late || Clock::now() >= end_of_try;
      return is_late || (is_cancelled && is_cancelled());
    };
    try {
      return call(is_over);
    } catch (const StoreFailure& failure) {
      if (failure.kind() != StoreFailure::Kind::kMayPass) refuse(url, failure);
      const auto share = static_cast<std::int64_t>(hash64(hash_bytes(url), tries) % 50);
      const auto next = Clock::now() + pause * (100 - share) / 100;
      if (next >= deadline || (is_cancelled && is_cancelled())) {
        const std::string limit =
            is_late ? concat(" (a try may last ", format_duration(try_s), ")") : "";
        throw Error(ErrorCode::kIo,
                    concat("cannot read '", url, "': ", failure.what(), limit, "; tried ", tries,
                           tries == 1 ? " time" : " times", " within ", kTimeoutName, " = ",
                           format_duration(timeout_s)));
      }
      pause_until(next, is_cancelled);
      pause = std::min(2 * pause, kLongestPause);
    }
  }
}

Store& store_of(const RemoteUrl& url, const IsCancelled& is_cancelled) {
  const double stall_s = std::max(kLeastStallS, seconds_of(kStallName, kDefaultStallS));
  return tried_again(url.with_path(url.path), is_cancelled, [&](const IsCancelled&) -> Store& {
    return store_library(url.scheme).connect(url.authority, stall_s);
  });
}

DataFile data_file_of(const RemoteUrl& url, const StoreEntry& entry) {
  return {
      .path = url.with_path(entry.path), .bytes = entry.bytes, .modified_ns = entry.modified_ns};
}

StoreEntry examine_file(const RemoteUrl& url, const IsCancelled& is_cancelled) {
  const std::string text = url.with_path(url.path);
  Store& store = store_of(url, is_cancelled);
  StoreEntry entry = tried_again(text, is_cancelled, [&](const IsCancelled& is_over) {
    return store.examine(url.path, is_over);
  });
  if (entry.is_folder) {
    throw Error(ErrorCode::kIo,
                concat("data file '", text, "' is a directory; to read the files in it write '",
                       text, text.ends_with('/') ? "*'" : "/*'"));
  }
  entry.path = url.path;
  return entry;
}

class RemoteFile : public RandomFile {
 public:
  RemoteFile(const RemoteUrl& url, IsCancelled is_cancelled)
      : name_(url.with_path(url.path)),
        is_cancelled_(std::move(is_cancelled)),
        store_(store_of(url, is_cancelled_)),
        entry_(examine_file(url, is_cancelled_)) {}

  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return entry_.bytes; }
  std::int64_t piece_bytes() const override { return kRemotePieceBytes; }

  void read(std::int64_t begin, std::span<char> out) const override {
    if (begin + std::ssize(out) > entry_.bytes) {
      throw Error(ErrorCode::kIo, concat("data file '", name_, "' has become shorter"));
    }
    while (!out.empty()) {
      const auto piece = out.first(std::min<std::size_t>(out.size(), kRemotePieceBytes));
      tried_again(name_, is_cancelled_,
                  [&](const IsCancelled& is_over) { store_.read(entry_, begin, piece, is_over); });
      begin += std::ssize(piece);
      out = out.subspan(piece.size());
    }
  }

 private:
  const std::string name_;
  const IsCancelled is_cancelled_;
  Store& store_;
  const StoreEntry entry_;
};

bool is_pattern(std::string_view text) { return text.find_first_of("*?[") != std::string::npos; }

std::string_view name_of(const StoreEntry& entry) {
  return std::string_view(entry.path).substr(entry.path.rfind('/') + 1);
}

/// What in `folder` has a name that matches.
std::vector<StoreEntry> matches_in(Store& store,
                                   const RemoteUrl& url,
                                   const std::string& folder,
                                   const std::string& pattern) {
  std::vector<StoreEntry> entries =
      tried_again(url.with_path(folder), {},
                  [&](const IsCancelled& is_over) { return store.list(folder, is_over); });
  std::erase_if(entries, [&](const StoreEntry& entry) {
    const std::string name(name_of(entry));
    return name.empty() || ::fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) != 0;
  });
  return entries;
}

/// The file `path`; none if there is no such file, or, with `or_refused`, the store refuses to say.
std::optional<StoreEntry> file_at(Store& store,
                                  const RemoteUrl& url,
                                  const std::string& path,
                                  bool or_refused) {
  const auto look = [&](const IsCancelled& is_over) -> std::optional<StoreEntry> {
    try {
      StoreEntry entry = store.examine(path, is_over);
      if (entry.is_folder) return std::nullopt;
      entry.path = path;
      return entry;
    } catch (const StoreFailure& failure) {
      const bool is_refused = failure.kind() == StoreFailure::Kind::kFinal;
      if (failure.kind() != StoreFailure::Kind::kMissing && !(is_refused && or_refused)) throw;
      return std::nullopt;
    }
  };
  return tried_again(url.with_path(path), {}, look);
}

std::string joined(const std::string& folder, std::string_view name) {
  return folder.empty() ? std::string(name) : concat(folder, "/", name);
}

/// The files that match the parts of a glob from `at` on, below `folder`.
void expand(Store& store,
            const RemoteUrl& url,
            const std::string& folder,
            std::size_t at,
            std::vector<StoreEntry>& found) {
  const std::size_t slash = url.path.find('/', at);
  const bool is_last = slash == std::string::npos;
  const std::string part = url.path.substr(at, is_last ? slash : slash - at);
  if (!is_pattern(part)) {
    const std::string path = joined(folder, part);
    if (!is_last) return expand(store, url, path, slash + 1, found);
    const std::optional<StoreEntry> file = file_at(store, url, path, /*or_refused=*/false);
    if (file) found.push_back(*file);
    return;
  }
  for (StoreEntry& entry : matches_in(store, url, folder, part)) {
    if (entry.is_folder == is_last) continue;
    if (is_last) {
      found.push_back(std::move(entry));
    } else {
      expand(store, url, entry.path, slash + 1, found);
    }
  }
}

}  // namespace

bool is_remote(const std::string& path) {
  return path.starts_with("s3://") || path.starts_with("hdfs://");
}

std::vector<DataFile> list_remote_files(const std::string& text) {
  const RemoteUrl url = RemoteUrl::parse(text);
  if (!is_pattern(url.path)) return {data_file_of(url, examine_file(url, {}))};
  Store& store = store_of(url, {});
  // S3 refuses to say whether there is a file to who may only list a part of the bucket.
  if (const auto file = file_at(store, url, url.path, /*or_refused=*/true)) {
    return {data_file_of(url, *file)};
  }
  std::vector<StoreEntry> found;
  expand(store, url, "", 0, found);
  if (found.empty()) throw Error(ErrorCode::kIo, concat("no data file matches '", text, "'"));
  std::vector<DataFile> files;
  for (const StoreEntry& entry : found) files.push_back(data_file_of(url, entry));
  std::ranges::sort(files, natural_less, &DataFile::path);
  return files;
}

DataFile describe_remote_file(const std::string& text) {
  const RemoteUrl url = RemoteUrl::parse(text);
  return data_file_of(url, examine_file(url, {}));
}

std::shared_ptr<const RandomFile> open_remote_file(const std::string& url,
                                                   std::function<bool()> is_cancelled) {
  return std::make_shared<RemoteFile>(RemoteUrl::parse(url), std::move(is_cancelled));
}

}  // namespace satrap::data
