#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace satrap::data {

/// Whether a path is a URL, which only a store can have.
bool is_url(const std::string& path);

/// A folder in S3 or HDFS, in which a job writes. Names are those of files in it and below, with
/// slashes. A file is replaced at once: a reader finds the one before, or the new one. Requests are
/// tried again as reads of data are. All throw Error(kIo) that names the URL and what the store
/// says, Error(kUnavailable) if this satrap was built without the store's client. Thread-safe.
class RemoteFolder {
 public:
  /// s3://bucket/prefix or hdfs://namenode:9870/path; the folder need not be there. Asks the store
  /// nothing. Throws Error(kInvalidConfig) for another URL and for one with a password.
  explicit RemoteFolder(const std::string& url);

  const std::string& url() const { return url_; }
  std::string url_of(const std::string& name) const { return url_ + "/" + name; }

  void put(const std::string& local_file, const std::string& name) const;
  void put_text(std::string_view text, const std::string& name) const;

  /// Writes a local file, which is incomplete if this throws.
  void get(const std::string& name, const std::string& local_file) const;

  /// The content of a small file; nullopt if there is none.
  std::optional<std::string> find_text(const std::string& name) const;

  struct Entry {
    std::string name;  // without a slash
    bool is_folder = false;
  };
  /// The entries of a folder below this one ("": this one), sorted; empty if it is not there.
  std::vector<Entry> list(const std::string& folder) const;

  /// Not an error if there is none.
  void remove_file(const std::string& name) const;
  void remove_folder(const std::string& name) const;

 private:
  std::string path_of(const std::string& name) const;

  std::string url_, scheme_, authority_, path_;  // without a slash at the end
};

}  // namespace satrap::data
