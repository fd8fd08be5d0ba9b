#include "satrap/data/compress.h"

#include <atomic>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "src/data/files/byte_stream.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class CompressTest : public FilesTest {
 protected:
  /// What a reader gets of a file of these bytes.
  std::string read_back(const std::string& name, const std::string& bytes) const {
    std::atomic<std::int64_t> bytes_read{0};
    Interruption never(nullptr);
    const auto stream = open_byte_stream(write(name, bytes), bytes_read, never);
    std::string text;
    char buffer[1000];
    while (const std::size_t size = stream->read(buffer, sizeof(buffer))) text.append(buffer, size);
    return text;
  }
  static std::string compressed(const std::string& name, std::string_view text) {
    std::string out = "left from an earlier piece";
    compress(compression_of(name), text, out);
    return out;
  }
};

TEST_F(CompressTest, IsChosenByTheEndOfTheName) {
  EXPECT_EQ(compression_of("rows.tsv.gz"), Compression::kGzip);
  EXPECT_EQ(compression_of("rows.tsv.zst"), Compression::kZstd);
  EXPECT_EQ(compression_of("rows.tsv"), Compression::kNone);
  EXPECT_EQ(compression_of("rows.gz.tsv"), Compression::kNone);
  EXPECT_EQ(compression_of("-"), Compression::kNone);
  EXPECT_EQ(compression_of(""), Compression::kNone);
}

TEST_F(CompressTest, WithoutCompressionTheTextStaysAsItIs) {
  EXPECT_EQ(compressed("x", "a\tb\n"), "a\tb\n");
  EXPECT_EQ(compressed("x", ""), "");
}

TEST_F(CompressTest, PiecesOneAfterTheOtherAreOneFile) {
  for (const std::string name : {"x.gz", "x.zst", "x"}) {
    const std::string pieces =
        compressed(name, "one\n") + compressed(name, "") + compressed(name, "two\n");
    EXPECT_EQ(read_back(name, pieces), "one\ntwo\n") << name;
  }
}

TEST_F(CompressTest, WhatRepeatsItselfGetsSmaller) {
  const std::string text(100'000, 'a');
  for (const std::string name : {"x.gz", "x.zst"}) {
    EXPECT_LT(compressed(name, text).size(), 2'000U) << name;
  }
}

TEST_F(CompressTest, AnyBytesComeBack) {
  std::mt19937_64 random(1);
  for (const std::string name : {"x.gz", "x.zst"}) {
    for (const std::size_t size : {1U, 1000U, 300'000U}) {
      std::string text(size, '\0');
      for (char& c : text) c = static_cast<char>(random());  // does not get smaller
      EXPECT_TRUE(read_back(name, compressed(name, text)) == text) << name << " " << size;
    }
  }
}

}  // namespace
}  // namespace satrap::data
