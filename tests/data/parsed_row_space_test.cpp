#include "src/data/cache/parsed_row_space.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

namespace fs = std::filesystem;

class RowCacheSpaceTest : public FilesTest {
 protected:
  RowCacheSpaceTest() { set_log_level(LogLevel::kOff); }
  ~RowCacheSpaceTest() override {
    for (const int fd : open_) ::close(fd);
    set_log_level(LogLevel::kInfo);
  }

  ParsedRowSpace space(std::int64_t max_bytes, const std::string& ending = "") {
    fs::create_directories(path_of("cache"));
    return {path_of("cache") + ending, max_bytes, caches_};
  }

  /// "a.rows" stands for a name as caches have it.
  std::string cache(std::string name) const {
    if (const std::size_t end = name.find(".rows"); end != std::string::npos) {
      name.insert(end, kHash);
    }
    return path_of("cache") + "/" + name;
  }

  void put(const std::string& name, std::size_t bytes, int hours_unused) {
    fs::create_directories(path_of("cache"));
    write("cache/" + fs::path(cache(name)).filename().string(), std::string(bytes, 'x'));
    fs::last_write_time(cache(name),
                        fs::file_time_type::clock::now() - std::chrono::hours(hours_unused));
  }

  /// Somebody uses it; an open file for it.
  int use(const std::string& name, int lock) {
    const int fd = ::open(cache(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    open_.push_back(fd);
    EXPECT_EQ(::flock(fd, lock | LOCK_NB), 0);
    return fd;
  }

  std::int64_t reserve(const ParsedRowSpace& space,
                       const std::string& name,
                       std::int64_t bytes,
                       std::int64_t expected = 0) {
    return space.reserve(cache(name), use(name + ".part", LOCK_EX), bytes, expected);
  }

  std::string refusal(const ParsedRowSpace& space,
                      const std::string& name,
                      std::int64_t bytes,
                      std::int64_t expected = 0) {
    return error_of([&] { reserve(space, name, bytes, expected); }, ErrorCode::kIo);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names = list_directory(path_of("cache"));
    std::erase(names, ".lock");
    for (std::string& name : names) {
      if (const std::size_t hash = name.find(kHash); hash != std::string::npos) {
        name.erase(hash, kHash.size());
      }
    }
    return names;
  }

  std::shared_ptr<JobCaches> caches_ = std::make_shared<JobCaches>();

 private:
  static constexpr std::string_view kHash = "-0123456789abcdef";

  std::vector<int> open_;
};

using Names = std::vector<std::string>;

TEST_F(RowCacheSpaceTest, WithoutALimitNothingIsRemoved) {
  put("a.rows", 1000, 9);
  EXPECT_EQ(reserve(space(0), "b.rows", 1'000'000), INT64_MAX);
  space(0).trim();
  EXPECT_EQ(names(), (Names{"a.rows", "b.rows.part"}));
  EXPECT_EQ(fs::file_size(cache("b.rows.part")), 0U);
}

TEST_F(RowCacheSpaceTest, WhatWasUsedLongestAgoMakesRoom) {
  put("a.rows", 30, 2);
  put("b.rows", 40, 3);
  put("c.rows", 30, 1);
  EXPECT_EQ(reserve(space(100), "new.rows", 40), 40);
  EXPECT_EQ(names(), (Names{"a.rows", "c.rows", "new.rows.part"}));
  EXPECT_EQ(reserve(space(100), "more.rows", 1), 2) << "and a 64th of the limit";
  EXPECT_EQ(names(), (Names{"c.rows", "more.rows.part", "new.rows.part"}));
}

TEST_F(RowCacheSpaceTest, OthersSeeWhatIsReserved) {
  EXPECT_EQ(reserve(space(6400), "a.rows", 10), 110);
  EXPECT_EQ(fs::file_size(cache("a.rows.part")), 110U);
  EXPECT_EQ(reserve(space(6400), "b.rows", 6290), 6290);
  EXPECT_NE(refusal(space(6400), "c.rows", 1), "");
}

TEST_F(RowCacheSpaceTest, ACacheInUseStays) {
  put("a.rows", 50, 2);
  put("b.rows", 50, 1);
  use("a.rows", LOCK_SH);
  reserve(space(100), "new.rows", 50);
  EXPECT_EQ(names(), (Names{"a.rows", "new.rows.part"}));
  const std::string error = refusal(space(100), "other.rows", 1);
  EXPECT_TRUE(contains(error, "they need about 1B")) << error;
  EXPECT_TRUE(contains(error, "100B, of which 100B are in use")) << error;
  EXPECT_TRUE(contains(error, "data.cache.max_size")) << error;
  EXPECT_TRUE(space(100).has_refused(cache("other.rows")));
  EXPECT_FALSE(space(100).has_refused(cache("new.rows")));
}

TEST_F(RowCacheSpaceTest, WhatAKilledProcessHasLeftGoesFirst) {
  put("a.rows", 50, 5);
  put("left.rows.part", 50, 0);
  reserve(space(100), "new.rows", 50);
  EXPECT_EQ(names(), (Names{"a.rows", "new.rows.part"}));
}

TEST_F(RowCacheSpaceTest, TheCacheThatIsReplacedGoesBeforeOthers) {
  put("a.rows", 50, 5);
  put("b.rows", 50, 0);
  reserve(space(100), "b.rows", 50);
  EXPECT_EQ(names(), (Names{"a.rows", "b.rows.part"}));
}

TEST_F(RowCacheSpaceTest, OneThatWillNotFitHasNoOtherRemoved) {
  put("a.rows", 50, 5);
  EXPECT_EQ(reserve(space(100), "large.rows", 20, 200), 21);
  const std::string error = refusal(space(100), "huge.rows", 51, 200);
  EXPECT_TRUE(contains(error, "about 200B")) << error;
  EXPECT_EQ(names().front(), "a.rows");
}

TEST_F(RowCacheSpaceTest, OneThatWillNotFitBesideThoseInUseHasNoOtherRemoved) {
  put("a.rows", 20, 5);
  put("used.rows", 70, 6);
  use("used.rows", LOCK_SH);
  EXPECT_NE(refusal(space(100), "new.rows", 20, 40), "");
  EXPECT_EQ(names().front(), "a.rows");
  EXPECT_EQ(reserve(space(100), "other.rows", 20, 30), 21);
  EXPECT_EQ(names(), (Names{"new.rows.part", "other.rows.part", "used.rows"}));
}

TEST_F(RowCacheSpaceTest, TheFolderMayEndWithASlash) {
  const ParsedRowSpace with_slash = space(100, "/");
  const int fd = use("a.rows.part", LOCK_EX);
  const std::string path = path_of("cache") + "//" + fs::path(cache("a.rows")).filename().string();
  EXPECT_EQ(with_slash.reserve(path, fd, 60, 0), 61);
  EXPECT_EQ(with_slash.reserve(path, fd, 100, 0), 100) << "its own part does not count";
}

TEST_F(RowCacheSpaceTest, ALowerLimitHoldsForWhatIsThere) {
  put("a.rows", 50, 5);
  put("b.rows", 50, 4);
  put("c.rows", 50, 3);
  space(110).trim();
  EXPECT_EQ(names(), (Names{"b.rows", "c.rows"}));
  use("b.rows", LOCK_SH);
  space(1).trim();
  EXPECT_EQ(names(), (Names{"b.rows"}));
}

TEST_F(RowCacheSpaceTest, ALockThatAnotherOneKeepsIsWaitedForWithADeadline) {
  put("a.rows", 50, 5);
  const ParsedRowSpace hasty(path_of("cache"), 10, caches_, std::chrono::milliseconds(20));
  const int other = ::open((path_of("cache") + "/.lock").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  const std::string error = refusal(hasty, "b.rows", 1);
  EXPECT_TRUE(contains(error, "another process has kept '")) << error;
  EXPECT_TRUE(contains(error, "/.lock' locked for 20 ms")) << error;
  EXPECT_TRUE(hasty.has_refused(cache("b.rows"))) << "no later pass waits for it again";
  hasty.trim();
  EXPECT_EQ(names(), (Names{"a.rows", "b.rows.part"})) << "which is left to the other one";
  ::close(other);
  hasty.trim();
  EXPECT_EQ(names(), (Names{"b.rows.part"}));
}

TEST_F(RowCacheSpaceTest, ALockOnTheFolderItselfIsNobodysBusiness) {
  const ParsedRowSpace hasty(path_of("cache"), 100, caches_, std::chrono::milliseconds(0));
  fs::create_directories(path_of("cache"));
  const int reader = ::open(path_of("cache").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(reader, LOCK_EX), 0);
  EXPECT_EQ(reserve(hasty, "b.rows", 1), 2);
  ::close(reader);
}

TEST_F(RowCacheSpaceTest, OtherFilesOfTheFolderAreNotTouched) {
  put("notes.txt", 500, 9);
  for (const char* name : {"cache/mine.rows", "cache/-0123456789abcdef.rows", "cache/my.rows.part",
                           "cache/t-0123456789abcdeg.rows"}) {
    write(name, "not a cache");
  }
  put("a.rows", 100, 1);
  fs::create_directories(cache("folder.rows"));
  reserve(space(100), "new.rows", 100);
  EXPECT_EQ(names(), (Names{".rows", "folder.rows", "mine.rows", "my.rows.part", "new.rows.part",
                            "notes.txt", "t-0123456789abcdeg.rows"}));
}

}  // namespace
}  // namespace satrap::data
