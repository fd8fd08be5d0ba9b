#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "satrap/core/thread_group.h"
#include "src/data/files/random_file.h"
#include "src/data/rows/ordered_jobs.h"

namespace satrap::data {

/// The bytes of a file from its beginning to its end, for one thread. Others (`data-fetch`) read
/// pieces ahead of it, several at a time, which hides the time that a store takes to answer.
class ReadAhead {
 public:
  /// `file` must stop reading soon once the owner is destroyed, which waits for that.
  explicit ReadAhead(std::shared_ptr<const RandomFile> file);

  /// Reads up to `size` bytes into `out`, at least one; 0: the end. Throws as RandomFile::read,
  /// when the bytes before have been given out.
  std::size_t read(char* out, std::size_t size);

 private:
  struct Piece {
    std::vector<char> bytes;
    std::exception_ptr error;
  };
  using Pieces = OrderedJobs<Piece>;

  void fetch();

  const std::shared_ptr<const RandomFile> file_;
  const std::int64_t num_pieces_;
  Pieces pieces_;
  Pieces::Numbered* current_ = nullptr;
  std::size_t given_ = 0;   // bytes of the current piece
  std::int64_t taken_ = 0;  // pieces
  ThreadGroup threads_{[this] { pieces_.close(); }};
};

}  // namespace satrap::data
