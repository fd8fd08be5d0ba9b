#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/data/files/random_file.h"

namespace satrap::data {

/// The functions that satrap needs of clients of S3 and HDFS. Each is in a shared library of its
/// own, which is opened when it is first needed, so that satrap runs without it. The two sides
/// share only this header. A call is one try: store_file.h tries again.

/// Why a try has failed. `what()` says it without the name of the file.
class StoreFailure : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    kMayPass,  // the network, or a server that is busy
    kMissing,  // there is no such file
    kChanged,  // the file is no longer what it was
    kFinal     // refused: trying again does not help
  };

  StoreFailure(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// Whether nobody waits for the answer any more; the thread that called the store asks. Empty:
/// never.
using IsCancelled = std::function<bool()>;

/// The message of a failure then.
inline constexpr const char* kNoLongerAwaited = "the answer came too late";

/// A file or folder, as it is now.
struct StoreEntry {
  std::string path;  // within the store, without a slash at its beginning
  bool is_folder = false;
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;  // since 1970
  std::string version = {};      // differs between contents; "": not known, as in a listing
};

/// Changes the files of a store. Thread-safe. All throw StoreFailure.
class StoreWriter {
 public:
  virtual ~StoreWriter() = default;

  /// Gives `path` the content of a file of this machine, whose errors pass. A reader finds what was
  /// there before, or all of it. Creates folders where the store has any.
  virtual void write(const std::string& path, const RandomFile& content) = 0;

  /// Removes a file. Not an error if there is none.
  virtual void remove_file(const std::string& path) = 0;

  /// Removes a folder with everything in it. Not an error if there is none.
  virtual void remove_folder(const std::string& path) = 0;
};

/// A bucket of S3, or the files of a name node. Thread-safe. All throw StoreFailure, also within
/// about a second when they are cancelled.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  /// With its version.
  virtual StoreEntry examine(const std::string& path, const IsCancelled& is_cancelled) = 0;

  /// The entries of a folder, in any order; "": the uppermost.
  virtual std::vector<StoreEntry> list(const std::string& folder,
                                       const IsCancelled& is_cancelled) = 0;

  /// Fills `out`, which is not empty, with the bytes of `file` from `begin` on, and makes sure that
  /// they are of the version that `file` has.
  virtual void read(const StoreEntry& file,
                    std::int64_t begin,
                    std::span<char> out,
                    const IsCancelled& is_cancelled) = 0;

  /// Lives as long as the store.
  virtual StoreWriter& writer() = 0;
};

class StoreLibrary {
 public:
  virtual ~StoreLibrary() = default;
  virtual std::string describe() const = 0;  // "libcurl 7.88.1"

  /// `authority`: the bucket, or "host:port" of a name node. A request that makes no progress for
  /// `stall_s` seconds (that reads: less than 1 KiB/s) ends. The store lives as long as the
  /// library; it is the same for equal arguments.
  virtual ObjectStore& connect(const std::string& authority, double stall_s) = 0;
};

}  // namespace satrap::data
