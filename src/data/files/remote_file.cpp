#include "src/data/files/remote_file.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <fnmatch.h>

#include "satrap/core/error.h"
#include "src/data/files/file_list.h"
#include "src/data/files/object_store.h"
#include "src/data/files/remote_url.h"
#include "src/data/files/store_retry.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kRemotePieceBytes = std::int64_t{8} << 20;

/// A store may say anything; of what passes, the sizes of many files have a sum.
void check_size(const std::string& url, std::int64_t bytes) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  if (bytes >= 0 && bytes <= kMost) return;
  throw Error(ErrorCode::kIo, concat("data file '", url, "': the store says that it has ", bytes,
                                     " bytes, not one of 0 to ", kMost));
}

DataFile data_file_of(const RemoteUrl& url, const StoreEntry& entry) {
  const std::string path = url.with_path(entry.path);
  check_size(path, entry.bytes);
  return {.path = path, .bytes = entry.bytes, .modified_ns = entry.modified_ns};
}

StoreEntry examine_file(const RemoteUrl& url, const IsCancelled& is_cancelled) {
  const std::string text = url.with_path(url.path);
  ObjectStore& store = store_of(url, is_cancelled);
  StoreEntry entry = tried_again(text, is_cancelled, [&](const IsCancelled& is_over) {
    return store.examine(url.path, is_over);
  });
  if (entry.is_folder) {
    throw Error(ErrorCode::kIo,
                concat("data file '", text, "' is a directory; to read the files in it write '",
                       text, text.ends_with('/') ? "*'" : "/*'"));
  }
  check_size(text, entry.bytes);
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
    if (std::ssize(out) > entry_.bytes || begin > entry_.bytes - std::ssize(out)) {
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
  ObjectStore& store_;
  const StoreEntry entry_;
};

bool is_pattern(std::string_view text) { return text.find_first_of("*?[") != std::string::npos; }

std::string_view name_of(const StoreEntry& entry) {
  return std::string_view(entry.path).substr(entry.path.rfind('/') + 1);
}

/// The entries of `folder` whose name matches.
std::vector<StoreEntry> matches_in(ObjectStore& store,
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
std::optional<StoreEntry> file_at(ObjectStore& store,
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
void expand(ObjectStore& store,
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
  ObjectStore& store = store_of(url, {});
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
