#pragma once

#include <string>

#include "satrap/net/rendezvous.h"

namespace satrap::net {

/// A store in a folder, for the processes of one machine: a file per key, replaced by rename, so
/// that a reader never sees half a value. Anyone who can read the folder can join the job. A wait
/// polls every few milliseconds.
class FileRendezvous : public Rendezvous {
 public:
  /// Creates the folder, for this user only, if it is missing.
  explicit FileRendezvous(const std::string& directory);

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key) override;
  std::string wait(const std::string& key, Deadline deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  void erase(const std::string& key) override;

 private:
  std::string path_of(const std::string& key) const;
  const std::string directory_;
};

}  // namespace satrap::net
