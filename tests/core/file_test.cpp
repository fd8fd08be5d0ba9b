#include "satrap/core/file.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "tests/support/temporary_directory.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class File : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

 private:
  TemporaryDirectory directory_;
};

// Code and message of the Error that `action` throws.
template <class Action>
std::pair<ErrorCode, std::string> error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "did not throw";
  return {ErrorCode::kInternal, ""};
}

std::string random_bytes(std::size_t size) {
  const RandomStream random{hash64(3)};
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(random.bits(i));
  return bytes;
}

TEST_F(File, ReadsBackWhatWasWrittenInAnyPieces) {
  const std::string content = random_bytes(5'000'000);  // several buffers
  for (const std::size_t piece : {7'001UL, 1UL << 20, 3'000'000UL, 5'000'000UL}) {
    FileWriter writer(path("a"));
    for (std::size_t at = 0; at < content.size(); at += piece) {
      writer.write(std::string_view(content).substr(at, piece));
    }
    writer.finish();
    EXPECT_EQ(writer.bytes_written(), 5'000'000);
    EXPECT_EQ(writer.checksum(), hash_bytes(content));

    FileReader reader(path("a"));
    EXPECT_EQ(reader.size(), 5'000'000);
    std::string copy(content.size(), '\0');
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(copy));
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      EXPECT_FALSE(reader.at_end());
      reader.read(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    }
    EXPECT_TRUE(reader.at_end());
    EXPECT_TRUE(copy == content);
    EXPECT_EQ(reader.checksum(), hash_bytes(content));
  }
}

TEST_F(File, MayBeEmpty) {
  FileWriter(path("a")).finish();
  EXPECT_EQ(read_file(path("a")), "");
  EXPECT_EQ(FileReader(path("a")).checksum(), hash_bytes(""));
}

TEST_F(File, WriterReportsAFullDisk) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  FileWriter small("/dev/full");
  small.write("x");
  const auto [code, message] = error_of([&] { small.finish(); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_EQ(message, "/dev/full: cannot be written: No space left on device");

  FileWriter large("/dev/full");
  const std::string content(3 << 20, 'x');
  EXPECT_EQ(error_of([&] { large.write(content); }).second, message);
}

TEST_F(File, WriterContinuesAfterAShortWriteAndReportsWhatStoppedIt) {
  // If the limit lies inside a write, the kernel first writes up to it, then refuses.
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit = {};
  getrlimit(RLIMIT_FSIZE, &old_limit);
  const rlimit limit = {3'000'000, old_limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  FileWriter writer(path("a"));
  const std::string content(4 << 20, 'x');
  const std::string message = error_of([&] { writer.write(content); }).second;
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(message, path("a") + ": cannot be written: File too large");
  EXPECT_EQ(std::filesystem::file_size(path("a")), 3'000'000u);
}

TEST_F(File, ReaderReportsTruncation) {
  write_file_atomic(path("a"), "12345");
  FileReader reader(path("a"));
  std::byte bytes[3];
  reader.read(bytes);
  const auto [code, message] = error_of([&] { reader.read(bytes); });
  EXPECT_EQ(code, ErrorCode::kCorrupt);
  EXPECT_EQ(
      message,
      path("a") + ": truncated: 3 bytes needed at offset 3, but the file ends after 2 of them");
}

TEST_F(File, ReaderRefusesWhatIsNotThereOrNoFile) {
  EXPECT_EQ(
      error_of([&] { FileReader reader(path("none")); }),
      std::pair(ErrorCode::kIo, path("none") + ": cannot be opened: No such file or directory"));
  EXPECT_THAT(error_of([&] { read_file(path("")); }).second, HasSubstr("Is a directory"));
}

TEST_F(File, AtomicWriteReplacesAndLeavesNothingElseBehind) {
  write_file_atomic(path("a"), "old");
  write_file_atomic(path("a"), "new");
  EXPECT_EQ(read_file(path("a")), "new");
  EXPECT_THAT(list_directory(path("")), ElementsAre("a"));
}

TEST_F(File, AtomicWriteThatFailsLeavesTheOldContentAndNoRest) {
  std::filesystem::create_directory(path("a"));
  write_file_atomic(path("a/inside"), "kept");
  EXPECT_THAT(error_of([&] { write_file_atomic(path("a"), "new"); }).second,
              HasSubstr("cannot be renamed to " + path("a")));
  EXPECT_THAT(list_directory(path("")), ElementsAre("a"));
  EXPECT_EQ(read_file(path("a/inside")), "kept");
}

TEST_F(File, AFullDirectoryIsReplacedAndTheNewOneNeedNotReplaceAny) {
  for (const char* content : {"first", "second"}) {
    ensure_directory(path("new"));
    write_file_atomic(path("new/" + std::string(content)), content);
    replace_directory(path("new"), path("here"));
    EXPECT_THAT(list_directory(path("here")), ElementsAre(content));
    EXPECT_FALSE(std::filesystem::exists(path("new")));
  }
}

TEST_F(File, DirectoriesAreRenamedListedAndRemoved) {
  ensure_directory(path("x/y"));
  write_file_atomic(path("x/b"), "");
  rename_atomic(path("x"), path("z"));
  EXPECT_THAT(list_directory(path("z")), ElementsAre("b", "y"));
  remove_all(path("z"));
  remove_all(path("z"));  // nothing exists: fine
  EXPECT_THAT(list_directory(path("")), IsEmpty());
  EXPECT_EQ(error_of([&] { list_directory(path("z")); }).second,
            path("z") + ": cannot be listed: No such file or directory");
  EXPECT_EQ(error_of([&] { fsync_directory(path("z")); }).first, ErrorCode::kIo);
}

TEST_F(File, DirectoriesThatCannotBeMadeOrWrittenToAreNamed) {
  ensure_directory(path("x"));
  ensure_directory(path("x"));  // exists already: fine
  write_file_atomic(path("a"), "");
  EXPECT_THAT(error_of([&] { ensure_directory(path("a")); }).second,
              HasSubstr(path("a") + ": cannot be made a directory"));
  EXPECT_THAT(error_of([&] { ensure_directory("/proc"); }).second,
              HasSubstr("/proc: directory cannot be written to: "));
  EXPECT_TRUE(is_writable_directory(path("x")));
  EXPECT_FALSE(is_writable_directory("/proc"));
  EXPECT_FALSE(is_writable_directory(path("none")));
  EXPECT_THAT(list_directory(path("x")), IsEmpty());  // no trace of the probe
}

TEST_F(File, FreeBytesAreThoseOfTheNearestFolderThatExists) {
  EXPECT_GT(free_bytes(path("")), 0);
  EXPECT_GT(free_bytes(path("not/yet/there")), 0);
}

TEST(ShownPath, LeavesOutTheFolderItIsIn) {
  EXPECT_EQ(without_folder("/a/b/c", "/a/b"), "c");
  EXPECT_EQ(without_folder("/a/bb/c", "/a/b"), "/a/bb/c");
  EXPECT_EQ(without_folder("/a/b", "/a/b"), "/a/b");
  EXPECT_EQ(without_folder("a", ""), "a");
  for (const char* const path : {"a", "a/b", "../a", "./-"}) EXPECT_TRUE(is_relative_path(path));
  for (const char* const path : {"", "-", "/a", "~/a", "s3://bucket/a"}) {
    EXPECT_FALSE(is_relative_path(path)) << path;
  }
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(shown_path(here + "/runs/a"), "runs/a");
  EXPECT_EQ(shown_path("/elsewhere/a"), "/elsewhere/a");
}

}  // namespace
}  // namespace satrap
