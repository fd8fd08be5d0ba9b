#include "satrap/core/lock_file.h"

#include <cerrno>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temporary_directory.h"

namespace satrap {
namespace {

using std::chrono_literals::operator""ms;

class LockFile : public testing::Test {
 protected:
  ~LockFile() override {
    if (fd_ >= 0) ::close(fd_);
  }

  /// Of a folder with that mode; its access rights.
  int mode_in(mode_t folder_mode) {
    EXPECT_EQ(::chmod(folder_.path().c_str(), folder_mode), 0);
    const int fd = open_lock_file(path_);
    struct stat status = {};
    EXPECT_EQ(::fstat(fd, &status), 0);
    ::close(fd);
    return static_cast<int>(status.st_mode & 0777U);
  }

  const TemporaryDirectory folder_;
  const std::string path_ = folder_.path() + "/.lock";
  int fd_ = -1;
};

TEST_F(LockFile, IsOpenToThoseWhoMayWriteToItsFolder) {
  EXPECT_EQ(mode_in(0700), 0600);
  EXPECT_EQ(mode_in(0755), 0600);
  EXPECT_EQ(mode_in(0775), 0660) << "also one that was there";
  EXPECT_EQ(mode_in(0777), 0666);
  EXPECT_EQ(mode_in(0755), 0600);
}

TEST_F(LockFile, FollowsNoLinkAndWaitsForNoReaderOfAPipe) {
  std::filesystem::create_symlink("/dev/null", path_);
  EXPECT_EQ(open_lock_file(path_), -1);
  EXPECT_EQ(errno, ELOOP);
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  fd_ = open_lock_file(path_);
  EXPECT_GE(fd_, 0);
}

TEST_F(LockFile, IsTakenOnceTheOtherOneHasEnded) {
  fd_ = open_lock_file(path_);
  EXPECT_TRUE(take_lock(fd_, 0ms));
  const int other = open_lock_file(path_);
  EXPECT_FALSE(take_lock(other, 20ms));
  EXPECT_EQ(errno, EWOULDBLOCK);
  EXPECT_EQ(::flock(fd_, LOCK_UN), 0);
  EXPECT_TRUE(take_lock(other, 0ms));
  ::close(other);
}

}  // namespace
}  // namespace satrap
