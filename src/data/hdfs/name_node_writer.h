#pragma once

#include <string>

#include "src/data/files/object_store.h"
#include "src/data/http/http_client.h"

namespace satrap::data {

/// Writes files by WebHDFS, each under a temporary name (".tmp-" before it) that it loses once it
/// is complete.
class NameNodeWriter : public StoreWriter {
 public:
  /// `base`: the URL of the uppermost folder. Both live longer than this.
  NameNodeWriter(const std::string& base, HttpClient& http) : base_(base), http_(http) {}

  void write(const std::string& path, const RandomFile& content) override;
  void remove_file(const std::string& path) override { remove(path); }
  void remove_folder(const std::string& path) override { remove(path); }

 private:
  std::string url_of(const std::string& path, const std::string& operation) const;
  void remove(const std::string& path);

  const std::string& base_;
  HttpClient& http_;
};

}  // namespace satrap::data
