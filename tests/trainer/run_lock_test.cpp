#include "src/trainer/run_lock.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "tests/support/temporary_directory.h"

namespace satrap::trainer {
namespace {

using std::chrono_literals::operator""ms;
using testing::AllOf;
using testing::HasSubstr;

class RunLockTest : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/.lock"; }
  std::string content() const { return read_file(path()); }
  void write(const std::string& text) const { std::ofstream(path()) << text; }

  std::string refusal(const RunLockOptions& options = {}) const {
    try {
      const RunLock lock(folder_.path(), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return error.what();
    }
    return "";
  }

  TemporaryDirectory folder_;
};

/// The record of a job on another machine.
constexpr const char* kAnothers =
    R"({"host":"far","pid":77,"since":"2026-01-02T03:04:05Z","machine":"b","start":"1"})"
    "\n";

TEST_F(RunLockTest, WhoMayOnlyReadTheFolderCannotLockIt) {
  const RunLock lock(folder_.path());
  EXPECT_EQ(std::filesystem::status(path()).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(RunLockTest, AnotherStartIsRefusedWithTheNameOfTheOwner) {
  const RunLock lock(folder_.path());
  const std::string before = content();
  EXPECT_THAT(refusal(), AllOf(HasSubstr("run_dir: '" + folder_.path() + "' is in use by process " +
                                         std::to_string(::getpid()) + " on "),
                               HasSubstr(" since 20"), HasSubstr("choose another run_dir")));
  EXPECT_EQ(content(), before);
  lock.require_held();
}

TEST_F(RunLockTest, TheEndOfAJobLeavesNothing) {
  {
    const RunLock lock(folder_.path());
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(refusal(), "");
}

TEST_F(RunLockTest, AKilledProcessHasNoDirectory) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    const RunLock lock(folder_.path());
    if (::write(ready[1], "1", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  ASSERT_GT(owner, 0);
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(refusal(), HasSubstr("process " + std::to_string(owner)));
  ASSERT_EQ(::kill(owner, SIGKILL), 0);
  ASSERT_EQ(::waitpid(owner, nullptr, 0), owner);
  ASSERT_TRUE(std::filesystem::exists(path()));

  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(refusal({.beat = 60000ms}), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60000ms);  // it has not waited for beats
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(RunLockTest, ACutOffRecordIsNobodys) {
  for (const char* text : {"", "{\"host\":", "7\n", "{}\n"}) {
    write(text);
    EXPECT_EQ(refusal({.beat = 2ms}), "") << text;
  }
}

TEST_F(RunLockTest, AnotherMachineThatIsSilentHasNoDirectory) {
  write(kAnothers);
  const RunLock lock(folder_.path(), {.beat = 2ms});
  EXPECT_THAT(content(), HasSubstr("\"pid\":" + std::to_string(::getpid())));
}

TEST_F(RunLockTest, AnotherMachineThatTouchesTheFileKeepsTheDirectory) {
  write(kAnothers);
  std::atomic<bool> ends = false;
  std::thread owner([&] {
    while (!ends) {
      std::filesystem::last_write_time(path(), std::filesystem::file_time_type::clock::now());
      std::this_thread::yield();
    }
  });
  EXPECT_THAT(refusal({.beat = 60000ms / RunLock::kMissedBeats}),
              HasSubstr("is in use by process 77 on far since 2026-01-02T03:04:05Z"));
  ends = true;
  owner.join();
  EXPECT_EQ(content(), kAnothers);
}

TEST_F(RunLockTest, TheOwnerTouchesTheFile) {
  const RunLock lock(folder_.path(), {.beat = 1ms});
  const auto long_ago = std::filesystem::last_write_time(path()) - std::chrono::hours(1);
  std::filesystem::last_write_time(path(), long_ago);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::filesystem::last_write_time(path()) == long_ago) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
}

TEST_F(RunLockTest, AnOwnerThatWasPausedNoticesItsSuccessor) {
  std::optional<RunLock> lock(std::in_place, folder_.path());
  write(kAnothers);
  try {
    lock->require_held();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("has been taken over by another job"),
                                    HasSubstr("\"host\":\"far\"")));
  }
  lock.reset();
  EXPECT_EQ(content(), kAnothers);  // it does not remove what is another's
}

TEST_F(RunLockTest, AFileThatWasRemovedIsNobodysElse) {
  const RunLock lock(folder_.path());
  std::filesystem::remove(path());
  lock.require_held();
}

}  // namespace
}  // namespace satrap::trainer
