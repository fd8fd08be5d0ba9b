#include "src/data/files/read_ahead.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace satrap::data {
namespace {

constexpr std::int64_t kFetchers = 3;
constexpr std::int64_t kMostPieces = kFetchers + 1;  // in memory, with the one that is given out

std::int64_t pieces_of(const RandomFile& file) {
  return file.size() / file.piece_bytes() + (file.size() % file.piece_bytes() == 0 ? 0 : 1);
}

}  // namespace

ReadAhead::ReadAhead(std::shared_ptr<const RandomFile> file)
    : file_(std::move(file)), num_pieces_(pieces_of(*file_)), pieces_(kMostPieces) {
  for (std::int64_t i = 0; i < std::min(kFetchers, num_pieces_); ++i) {
    threads_.start("data-fetch", [this] { fetch(); });
  }
}

void ReadAhead::fetch() {
  while (Pieces::Numbered* const numbered = pieces_.acquire()) {
    if (numbered->number >= num_pieces_) return;
    Piece& piece = numbered->job;
    const std::int64_t begin = numbered->number * file_->piece_bytes();
    try {
      piece.bytes.resize(
          static_cast<std::size_t>(std::min(file_->piece_bytes(), file_->size() - begin)));
      file_->read(begin, piece.bytes);
    } catch (...) {
      piece.error = std::current_exception();
    }
    pieces_.deliver(numbered);
  }
}

std::size_t ReadAhead::read(char* out, std::size_t size) {
  if (current_ != nullptr && given_ == current_->job.bytes.size()) {
    pieces_.release(std::exchange(current_, nullptr));
  }
  if (current_ == nullptr) {
    if (taken_ == num_pieces_) return 0;
    Pieces::Numbered* const next = pieces_.take();
    if (next->job.error) std::rethrow_exception(next->job.error);
    current_ = next;
    given_ = 0;
    ++taken_;
  }
  const std::vector<char>& bytes = current_->job.bytes;
  const std::size_t n = std::min(size, bytes.size() - given_);
  std::memcpy(out, bytes.data() + given_, n);
  given_ += n;
  return n;
}

}  // namespace satrap::data
