#include "src/data/files/read_ahead.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"

namespace satrap::data {
namespace {

/// Bytes in memory, in pieces of ten.
class ShortPieces : public RandomFile {
 public:
  explicit ShortPieces(std::int64_t size, std::int64_t first_unreadable = 1'000'000)
      : first_unreadable_(first_unreadable) {
    for (std::int64_t i = 0; i < size; ++i) {
      bytes_ += static_cast<char>(hash64(static_cast<std::uint64_t>(i)));
    }
  }

  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return std::ssize(bytes_); }
  std::int64_t piece_bytes() const override { return 10; }
  void read(std::int64_t begin, std::span<char> out) const override {
    if (begin >= first_unreadable_) throw Error(ErrorCode::kIo, "unreadable");
    std::copy_n(bytes_.begin() + begin, out.size(), out.begin());
  }
  const std::string& bytes() const { return bytes_; }

 private:
  const std::string name_ = "short pieces";
  const std::int64_t first_unreadable_;
  std::string bytes_;
};

std::string read_all(ReadAhead& reader, std::size_t at_a_time) {
  std::string all, some(at_a_time, '\0');
  while (const std::size_t n = reader.read(some.data(), at_a_time)) all += some.substr(0, n);
  return all;
}

TEST(ReadAhead, GivesTheBytesInOrderWhateverTheirNumber) {
  for (const std::int64_t size : {0, 1, 9, 10, 11, 20, 39, 40, 41, 1003}) {
    for (const std::size_t at_a_time : {1, 7, 10, 64}) {
      const auto file = std::make_shared<ShortPieces>(size);
      ReadAhead reader(file);
      EXPECT_EQ(read_all(reader, at_a_time), file->bytes()) << size;
      char more = 0;
      EXPECT_EQ(reader.read(&more, 1), 0U);
    }
  }
}

TEST(ReadAhead, AnErrorComesAfterTheBytesBeforeIt) {
  const auto file = std::make_shared<ShortPieces>(100, 50);
  ReadAhead reader(file);
  std::string before(50, '\0');
  for (std::size_t at = 0; at < before.size();) {
    at += reader.read(before.data() + at, before.size() - at);
  }
  EXPECT_EQ(before, file->bytes().substr(0, 50));
  char next = 0;
  EXPECT_THROW(reader.read(&next, 1), Error);
}

/// Claims to be as large as a number can say.
class EndlessFile : public ShortPieces {
 public:
  EndlessFile() : ShortPieces(15, 10) {}
  std::int64_t size() const override { return INT64_MAX; }
};

TEST(ReadAhead, OfAFileOfAnySizeAnErrorComesAfterTheBytesThatThereAre) {
  ReadAhead reader(std::make_shared<EndlessFile>());
  std::string first(10, '\0');
  EXPECT_EQ(reader.read(first.data(), first.size()), first.size());
  char next = 0;
  EXPECT_THROW(reader.read(&next, 1), Error);
}

TEST(ReadAhead, EndsBeforeAllIsRead) {
  ReadAhead reader(std::make_shared<ShortPieces>(1000));
  char first = 0;
  EXPECT_EQ(reader.read(&first, 1), 1U);
}

}  // namespace
}  // namespace satrap::data
