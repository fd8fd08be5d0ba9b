#include "satrap/data/remote_folder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "src/data/files/object_store.h"
#include "src/data/files/random_file.h"
#include "src/data/files/remote_file.h"
#include "src/data/files/remote_url.h"
#include "src/data/files/store_retry.h"

namespace satrap::data {
namespace {

class TextContent : public RandomFile {
 public:
  explicit TextContent(std::string_view text) : text_(text) {}

  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return std::ssize(text_); }
  std::int64_t piece_bytes() const override { return size(); }
  void read(std::int64_t begin, std::span<char> out) const override {
    SATRAP_CHECK(begin + std::ssize(out) <= size(), "reads behind the end of a text");
    std::memcpy(out.data(), text_.data() + begin, out.size());
  }

 private:
  const std::string name_ = "a text";
  const std::string_view text_;
};

/// Calls use(pieces) with the bytes of a file, in order.
template <class Use>
void read_pieces(const RandomFile& file, const Use& use) {
  std::vector<char> bytes;
  for (std::int64_t begin = 0; begin < file.size(); begin += std::ssize(bytes)) {
    bytes.resize(static_cast<std::size_t>(std::min(file.piece_bytes(), file.size() - begin)));
    file.read(begin, bytes);
    use(std::string_view(bytes.data(), bytes.size()));
  }
}

/// Calls change(writer) until it succeeds.
template <class Change>
void change_store(const RemoteUrl& url, const char* verb, const Change& change) {
  StoreWriter& writer = store_of(url, {}, verb).writer();
  tried_again(url.with_path(url.path), {}, [&](const IsCancelled&) { change(writer); }, verb);
}

}  // namespace

bool is_url(const std::string& path) { return path.find("://") != std::string::npos; }

RemoteFolder::RemoteFolder(const std::string& url) {
  const RemoteUrl parsed = RemoteUrl::parse(url);
  scheme_ = parsed.scheme;
  authority_ = parsed.authority;
  path_ = parsed.path;
  while (path_.ends_with('/')) path_.pop_back();
  if (path_.empty()) {
    throw Error(ErrorCode::kInvalidConfig, concat("'", url, "' names no folder: write ", scheme_,
                                                  "://", authority_, "/FOLDER"));
  }
  url_ = parsed.with_path(path_);
}

std::string RemoteFolder::path_of(const std::string& name) const {
  return name.empty() ? path_ : path_ + "/" + name;
}

void RemoteFolder::put(const std::string& local_file, const std::string& name) const {
  const auto file = open_random_file(local_file);
  const std::string path = path_of(name);
  change_store({scheme_, authority_, path}, "write",
               [&](StoreWriter& writer) { writer.write(path, *file); });
}

void RemoteFolder::put_text(std::string_view text, const std::string& name) const {
  const TextContent content(text);
  const std::string path = path_of(name);
  change_store({scheme_, authority_, path}, "write",
               [&](StoreWriter& writer) { writer.write(path, content); });
}

void RemoteFolder::get(const std::string& name, const std::string& local_file) const {
  const auto file = open_remote_file(url_of(name));
  FileWriter out(local_file);
  read_pieces(*file, [&](std::string_view piece) { out.write(piece); });
  out.finish();
}

std::optional<std::string> RemoteFolder::find_text(const std::string& name) const {
  const RemoteUrl url{scheme_, authority_, path_of(name)};
  ObjectStore& store = store_of(url, {});
  return tried_again(
      url_of(name), {}, [&](const IsCancelled& is_over) -> std::optional<std::string> {
        try {
          StoreEntry entry = store.examine(url.path, is_over);
          if (entry.is_folder) return std::nullopt;
          entry.path = url.path;
          std::string text(static_cast<std::size_t>(entry.bytes), '\0');
          if (!text.empty()) store.read(entry, 0, text, is_over);
          return text;
        } catch (const StoreFailure& failure) {
          if (failure.kind() == StoreFailure::Kind::kMissing) return std::nullopt;
          if (failure.kind() != StoreFailure::Kind::kChanged) throw;
          throw StoreFailure(StoreFailure::Kind::kMayPass, failure.what());  // as it now is
        }
      });
}

std::vector<RemoteFolder::Entry> RemoteFolder::list(const std::string& folder) const {
  const RemoteUrl url{scheme_, authority_, path_of(folder)};
  ObjectStore& store = store_of(url, {}, "list");
  std::vector<Entry> entries;
  const auto found = tried_again(
      url.with_path(url.path), {},
      [&](const IsCancelled& is_over) { return store.list(url.path, is_over); }, "list");
  for (const StoreEntry& entry : found) {
    entries.push_back(
        {.name = entry.path.substr(entry.path.rfind('/') + 1), .is_folder = entry.is_folder});
  }
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

void RemoteFolder::remove_file(const std::string& name) const {
  const std::string path = path_of(name);
  change_store({scheme_, authority_, path}, "remove",
               [&](StoreWriter& writer) { writer.remove_file(path); });
}

void RemoteFolder::remove_folder(const std::string& name) const {
  const std::string path = path_of(name);
  change_store({scheme_, authority_, path}, "remove",
               [&](StoreWriter& writer) { writer.remove_folder(path); });
}

}  // namespace satrap::data
