#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace satrap::data {

/// A file that is read at any place: of this machine, or in a store (S3, HDFS). Thread-safe. The
/// libraries of optional parts use it too, and share only this header.
class RandomFile {
 public:
  virtual ~RandomFile() = default;

  virtual const std::string& name() const = 0;

  /// Bytes when it was opened.
  virtual std::int64_t size() const = 0;

  /// Fills `out` with the bytes from `begin` on. Throws Error(kIo), which names the file, if it
  /// cannot be read or has fewer bytes, and of a file in a store also if it has changed.
  virtual void read(std::int64_t begin, std::span<char> out) const = 0;

  /// How many bytes are worth reading at a time.
  virtual std::int64_t piece_bytes() const = 0;
};

/// `path` may be the URL of a file in a store, of which a read fails soon once is_cancelled(), if
/// there is one, returns true. Throws Error(kIo) for a file that cannot be opened,
/// Error(kUnavailable) if this satrap was built without what reads the store.
std::shared_ptr<const RandomFile> open_random_file(const std::string& path,
                                                   std::function<bool()> is_cancelled = {});

}  // namespace satrap::data
