#include "src/data/files/byte_stream.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/stat.h>

#include "satrap/core/hash.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class ByteStreamTest : public FilesTest {
 protected:
  std::string read_all(const std::string& path, std::size_t chunk = 1000) {
    const auto stream = open_byte_stream(path, bytes_read_, interruption_);
    std::string text;
    std::string buffer(chunk, '\0');
    while (const std::size_t n = stream->read(buffer.data(), chunk)) text.append(buffer, 0, n);
    return text;
  }

  std::atomic<std::int64_t> bytes_read_{0};
  std::atomic<bool> stop_{false};
  Interruption interruption_{&stop_};
};

/// Text that packs to about a third.
std::string long_text(std::size_t bytes) {
  std::string text;
  for (std::uint64_t i = 0; text.size() < bytes; ++i) {
    text += std::to_string(hash64(i) % 100'000) + "\n";
  }
  return text;
}

TEST_F(ByteStreamTest, ReadsAPlainFile) {
  EXPECT_EQ(read_all(write("a", "one\ntwo")), "one\ntwo");
  EXPECT_EQ(bytes_read_, 7);
}

TEST_F(ByteStreamTest, ReadsGzipWhateverItsName) {
  const std::string text = long_text(2'000'000);
  const std::string packed = gzip(text);
  EXPECT_EQ(read_all(write("a.gz", packed)), text);
  EXPECT_EQ(read_all(write("a.txt", packed), 1'000'000), text);
  EXPECT_EQ(bytes_read_, static_cast<std::int64_t>(2 * packed.size()));
}

TEST_F(ByteStreamTest, ReadsSeveralGzipMembersAndZeroPadding) {
  const std::string packed = gzip("one\n") + gzip("") + gzip("two\n") + std::string(5000, '\0');
  EXPECT_EQ(read_all(write("a.gz", packed)), "one\ntwo\n");
}

TEST_F(ByteStreamTest, ReadsSeveralZstdFrames) {
  const std::string text = long_text(2'000'000);
  EXPECT_EQ(read_all(write("a.zst", zstd(text) + zstd("") + zstd("two\n"))), text + "two\n");
}

TEST_F(ByteStreamTest, RefusesTruncatedGzipAndNamesTheFile) {
  const std::string packed = gzip(long_text(1'000'000));
  for (const std::size_t size : {packed.size() - 1, packed.size() / 2, std::size_t{15}}) {
    const std::string path = write("a.gz", packed.substr(0, size));
    const std::string message = error_of([&] { read_all(path); });
    EXPECT_TRUE(contains(message, path)) << message;
    EXPECT_TRUE(contains(message, "truncated")) << message;
  }
}

TEST_F(ByteStreamTest, RefusesTruncatedZstdAndNamesTheFile) {
  const std::string packed = zstd(long_text(1'000'000));
  for (const std::size_t size : {packed.size() - 1, packed.size() / 2, std::size_t{15}}) {
    const std::string path = write("a.zst", packed.substr(0, size));
    const std::string message = error_of([&] { read_all(path); });
    EXPECT_TRUE(contains(message, path)) << message;
    EXPECT_TRUE(contains(message, "truncated")) << message;
  }
}

TEST_F(ByteStreamTest, RefusesDamagedData) {
  std::string packed = gzip(long_text(100'000));
  packed[packed.size() / 2] ^= 0x55;
  EXPECT_TRUE(contains(error_of([&] { read_all(write("a.gz", packed)); }), "damaged gzip"));
  packed = gzip("one\n") + "rubbish";
  EXPECT_TRUE(contains(error_of([&] { read_all(write("b.gz", packed)); }), "damaged gzip"));
  packed = zstd("one\n") + "rubbish";
  EXPECT_TRUE(contains(error_of([&] { read_all(write("c.zst", packed)); }), "damaged zstd"));
}

TEST_F(ByteStreamTest, RefusesWhatTheNamePromisesInVain) {
  EXPECT_TRUE(contains(error_of([&] { read_all(write("a.gz", "plain")); }), "named .gz"));
  EXPECT_TRUE(contains(error_of([&] { read_all(write("a.zst", "plain")); }), "named .zst"));
}

TEST_F(ByteStreamTest, RefusesFormatsThatAreNotText) {
  EXPECT_TRUE(contains(error_of([&] { read_all(write("a", "PAR1....")); }), "is a Parquet file"));
}

TEST_F(ByteStreamTest, RefusesMissingAndEmptyFilesAndFolders) {
  const auto message = [&](const std::string& path) {
    return error_of([&] { read_all(path); }, ErrorCode::kIo);
  };
  EXPECT_TRUE(contains(message(path_of("none")), "No such file"));
  EXPECT_TRUE(contains(message(write("empty", "")), "is empty"));
  EXPECT_TRUE(contains(message(path_of("")), "is a directory"));
}

TEST_F(ByteStreamTest, RefusesAFileThatShrinksMeanwhile) {
  const std::string path = write("a", long_text(1'000'000));
  const auto stream = open_byte_stream(path, bytes_read_, interruption_);
  std::string buffer(1000, '\0');
  ASSERT_GT(stream->read(buffer.data(), buffer.size()), 0U);
  std::filesystem::resize_file(path, 500'000);
  const std::string message = error_of(
      [&] {
        while (stream->read(buffer.data(), buffer.size()) > 0) continue;
      },
      ErrorCode::kIo);
  EXPECT_TRUE(contains(message, "'" + path +
                                    "' has become shorter while it was read: it ended "
                                    "after 500000 of 10"))
      << message;
}

TEST_F(ByteStreamTest, AFileMayGrowMeanwhile) {
  const std::string path = write("a", "one\n");
  const auto stream = open_byte_stream(path, bytes_read_, interruption_);
  std::ofstream(path, std::ios::app) << "two\n";
  std::string text(100, '\0');
  std::size_t size = 0;
  while (const std::size_t n = stream->read(text.data() + size, text.size() - size)) size += n;
  EXPECT_EQ(text.substr(0, size), "one\ntwo\n");
}

TEST_F(ByteStreamTest, WaitsForTheWriterOfAPipe) {
  const std::string path = path_of("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string text = long_text(500'000);
  std::thread writer([&] { std::ofstream(path) << text; });
  EXPECT_EQ(read_all(path), text);
  writer.join();
}

TEST_F(ByteStreamTest, AStopEndsAPipeWithoutWriterOrText) {
  const std::string path = path_of("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread stopper([&] { stop_ = true; });
  EXPECT_EQ(read_all(path), "");
  EXPECT_TRUE(interruption_.is_cancelled());
  stopper.join();
  // Opened for reading and writing, so that neither side waits for the other to open.
  std::fstream writer(path, std::ios::in | std::ios::out);
  writer << gzip("one\n").substr(0, 12) << std::flush;
  EXPECT_EQ(read_all(path), "") << "not that it is truncated";
}

TEST_F(ByteStreamTest, AStopEndsNoFile) {
  stop_ = true;
  EXPECT_EQ(read_all(write("a", "one\ntwo")), "one\ntwo");
  EXPECT_FALSE(interruption_.is_cancelled());
}

}  // namespace
}  // namespace satrap::data
