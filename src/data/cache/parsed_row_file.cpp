#include "src/data/cache/parsed_row_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "src/data/rows/byte_fields.h"
#include "src/data/rows/record_bytes.h"
#include "src/data/rows/row_block_bytes.h"

namespace satrap::data {
namespace {

// A change of the layout, or of what a parser makes of a text, has a new version.
constexpr std::uint64_t kCacheVersion = 0x3343'5753'5452'4153;  // "SATRSWC3"

/// The end of the file.
struct CacheTrailer {
  std::uint64_t version = kCacheVersion;
  std::int64_t index_bytes = 0;  // just before it
  std::uint64_t checksum = 0;    // of the index
};

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

[[noreturn]] void fail_to(const char* verb, const std::string& path) {
  throw Error(ErrorCode::kIo, concat("cannot ", verb, " '", path, "': ", std::strerror(errno)));
}

}  // namespace

std::unique_ptr<ParsedRowWriter> ParsedRowWriter::open(const std::string& path,
                                                       const ParsedRowSpace& space) {
  const std::string part = part_of_cache(path);
  const ParsedRowSpace::Lock lock(space, path);
  for (;;) {
    // Neither opening waits: of a pipe nobody reads or writes.
    const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
    if (fd < 0) fail_to("create", part);
    // The writer before may have renamed or removed the file since.
    struct stat opened = {}, named = {};
    const bool is_taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    const bool is_named = ::stat(part.c_str(), &named) == 0 && ::fstat(fd, &opened) == 0 &&
                          opened.st_ino == named.st_ino;
    if (!is_taken && is_named) {
      std::unique_ptr<ParsedRowWriter> writer(new ParsedRowWriter(path, space, fd));
      if (opened.st_size > 0 && ::ftruncate(fd, 0) != 0) fail_to("empty", part);
      return writer;
    }
    ::close(fd);
    if (is_taken) return nullptr;
  }
}

ParsedRowWriter::ParsedRowWriter(std::string path, const ParsedRowSpace& space, int fd)
    : path_(std::move(path)), space_(space), fd_(fd) {}

ParsedRowWriter::~ParsedRowWriter() {
  if (!is_finished_) ::unlink(part_of_cache(path_).c_str());
  ::close(fd_);
}

void ParsedRowWriter::write(std::span<const std::byte> bytes) {
  num_bytes_ += std::ssize(bytes);
  if (num_bytes_ > reserved_) {
    const auto expected = static_cast<std::int64_t>(static_cast<double>(num_bytes_) / share_);
    reserved_ = space_.reserve(path_, fd_, num_bytes_, expected);
  }
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_to("write", part_of_cache(path_));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void ParsedRowWriter::add(const RowBlock& rows, const BadRows& bad) {
  CachedBlock block{.offset = num_bytes_,
                    .num_rows = rows.num_rows,
                    .num_bad = bad.count,
                    .end_row = blocks_.empty() ? 0 : blocks_.back().end_row};
  if (rows.num_rows > 0) block.end_row = rows.row_number(rows.num_rows - 1) + 1;
  if (bad.count > 0) block.end_row = std::max(block.end_row, bad.last_row + 1);
  buffer_.clear();
  if (rows.num_rows > 0) append_block(rows, buffer_);
  const std::int64_t row_bytes = std::ssize(buffer_);
  ByteWriter out(buffer_);
  put_bad_rows(bad, out);
  block.bytes = std::ssize(buffer_);
  block.bad_bytes = block.bytes - row_bytes;
  block.checksum = checksum_of(buffer_);
  write(buffer_);
  blocks_.push_back(block);
  num_rows_ += rows.num_rows;
}

void ParsedRowWriter::finish(const std::vector<DataFile>& files) {
  buffer_.clear();
  ByteWriter out(buffer_);
  out.put(files.size());
  for (const DataFile& file : files) put_data_file(file, out);
  out.put(blocks_.size());
  out.put(blocks_.data(), blocks_.size());
  const CacheTrailer trailer{.index_bytes = std::ssize(buffer_), .checksum = checksum_of(buffer_)};
  out.put(trailer);
  share_ = 1.0;
  write(buffer_);
  const std::string part = part_of_cache(path_);
  if (reserved_ < INT64_MAX && ::ftruncate(fd_, num_bytes_) != 0) fail_to("shorten", part);
  ::flock(fd_, LOCK_SH | LOCK_NB);  // others may read it now
  if (::rename(part.c_str(), path_.c_str()) != 0) fail_to("rename", part);
  is_finished_ = true;
}

ParsedRowFile::ParsedRowFile(const std::string& path)
    : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) fail_to("open", path_);
  try {
    const bool is_taken = ::flock(fd_, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status = {};
    if (is_taken || (::fstat(fd_, &status) == 0 && status.st_nlink == 0)) {
      throw Error(ErrorCode::kIo, "another run has just removed it to make room");
    }
    read_index();
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

ParsedRowFile::~ParsedRowFile() { ::close(fd_); }

void ParsedRowFile::read_index() {
  struct stat status = {};
  if (::fstat(fd_, &status) != 0) fail_to("read", path_);
  num_bytes_ = status.st_size;
  CacheTrailer trailer;
  const std::int64_t before = num_bytes_ - std::ssize(std::as_bytes(std::span(&trailer, 1)));
  if (before < 0) throw Error(ErrorCode::kCorrupt, "it is cut off");
  read_at(before, sizeof(trailer));
  ByteReader(buffer_, "its end").get(&trailer, 1);
  if (trailer.version != kCacheVersion) {
    throw Error(ErrorCode::kCorrupt, "it is cut off, or of another version of satrap");
  }
  if (trailer.index_bytes < 0 || trailer.index_bytes > before) {
    throw Error(ErrorCode::kCorrupt, "its index is damaged");
  }
  read_at(before - trailer.index_bytes, static_cast<std::size_t>(trailer.index_bytes));
  if (checksum_of(buffer_) != trailer.checksum) {
    throw Error(ErrorCode::kCorrupt, "its index is damaged");
  }
  ByteReader in(buffer_, "its index");
  for (auto n = in.get<std::size_t>(); n > 0; --n) files_.push_back(get_data_file(in));
  in.get_all(blocks_, in.get<std::size_t>());
  in.require_end();
  check_blocks(before - trailer.index_bytes);
}

/// A checksum finds damage; what somebody else has written here must not end the job either.
void ParsedRowFile::check_blocks(std::int64_t bytes) const {
  std::int64_t end = 0, end_row = 0;
  for (const CachedBlock& block : blocks_) {
    const bool is_within = block.offset >= end && block.offset <= bytes && block.bytes >= 0 &&
                           block.bytes <= bytes - block.offset && block.bad_bytes >= 0 &&
                           block.bad_bytes <= block.bytes;
    if (!is_within || block.num_rows < 0 || block.num_bad < 0 || block.end_row < end_row) {
      throw Error(ErrorCode::kCorrupt, concat("its index has no block at ", block.offset));
    }
    end = block.offset + block.bytes;
    end_row = block.end_row;
  }
}

void ParsedRowFile::mark_used() { ::futimens(fd_, nullptr); }

std::int64_t ParsedRowFile::num_rows() const {
  std::int64_t rows = 0;
  for (const CachedBlock& block : blocks_) rows += block.num_rows;
  return rows;
}

void ParsedRowFile::read_at(std::int64_t offset, std::size_t size) {
  buffer_.resize(size);
  for (std::span<std::byte> rest = buffer_; !rest.empty();) {
    const ssize_t n = ::pread(fd_, rest.data(), rest.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_to("read", path_);
    if (n == 0) throw Error(ErrorCode::kCorrupt, "it has become shorter");
    rest = rest.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
}

void ParsedRowFile::read(std::size_t block,
                         std::span<const NamedLabelConfig> labels,
                         RowBlock& rows,
                         BadRows& bad) {
  const CachedBlock& cached = blocks_[block];
  read_at(cached.offset, static_cast<std::size_t>(cached.bytes));
  if (checksum_of(buffer_) != cached.checksum) {
    throw Error(ErrorCode::kCorrupt, concat("the bytes from ", cached.offset, " on are damaged"));
  }
  const auto row_bytes = static_cast<std::size_t>(cached.bytes - cached.bad_bytes);
  rows.num_rows = 0;
  if (row_bytes > 0) read_block(std::span(buffer_).first(row_bytes), labels, rows);
  ByteReader in{std::span(buffer_).subspan(row_bytes), "bad rows"};
  bad = get_bad_rows(in);
  in.require_end();
  const std::int64_t begin_row = block == 0 ? 0 : blocks_[block - 1].end_row;
  bool are_those = rows.num_rows == cached.num_rows && bad.count == cached.num_bad;
  for (std::int64_t r = 0, next = begin_row; r < rows.num_rows && are_those; ++r) {
    are_those = rows.row_number(r) >= next && rows.row_number(r) < cached.end_row;
    next = rows.row_number(r) + 1;
  }
  if (!are_those) {
    throw Error(ErrorCode::kCorrupt,
                concat("the bytes from ", cached.offset, " on are not the rows of the index"));
  }
}

}  // namespace satrap::data
