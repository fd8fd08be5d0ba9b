#include "satrap/job/scratch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "tests/support/temporary_directory.h"

namespace satrap::job {
namespace {

namespace fs = std::filesystem;

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The system's temporary files are in a folder of the test.
class Scratch : public testing::Test {
 protected:
  Scratch() {
    ::setenv("TMPDIR", folder_.path().c_str(), 1);
    ::unsetenv("SATRAP_SCRATCH");
  }
  ~Scratch() override {
    ::unsetenv("TMPDIR");
    ::unsetenv("SATRAP_SCRATCH");
  }

  std::string default_path() const {
    return folder_.path() + "/satrap-" + std::to_string(::geteuid());
  }
  static std::string refusal() {
    try {
      scratch_folder();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  const TemporaryDirectory folder_;
};

TEST_F(Scratch, DefaultsToAFolderOfThisUserAlone) {
  EXPECT_EQ(scratch_folder(), default_path());
  EXPECT_EQ(scratch_folder(), default_path()) << "again";
  EXPECT_EQ(fs::status(default_path()).permissions(), fs::perms::owner_all);
}

TEST_F(Scratch, IsTheFolderThatTheEnvironmentNames) {
  const std::string named = folder_.path() + "/a/b";
  ::setenv("SATRAP_SCRATCH", named.c_str(), 1);
  EXPECT_EQ(scratch_folder(), named);
  EXPECT_TRUE(fs::is_directory(named));
}

TEST_F(Scratch, AFolderThatOthersCanWriteToIsRefused) {
  fs::create_directory(default_path());
  fs::permissions(default_path(), fs::perms::all);
  EXPECT_THAT(refusal(), HasSubstr("SATRAP_SCRATCH"));
}

TEST_F(Scratch, ALinkIsRefused) {
  fs::create_directory_symlink("/", default_path());
  EXPECT_THAT(refusal(), HasSubstr("SATRAP_SCRATCH"));
}

TEST_F(Scratch, AFileIsRefused) {
  std::ofstream(default_path()) << "a file";
  EXPECT_THAT(refusal(), HasSubstr("SATRAP_SCRATCH"));
}

TEST_F(Scratch, AFolderInItEndsWithItsObject) {
  std::string path;
  {
    const ScratchFolder one, two;
    path = one.path();
    EXPECT_TRUE(fs::is_directory(path));
    EXPECT_NE(path, two.path());
    std::ofstream(path + "/file") << "content";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(Scratch, AFolderInItThatAKilledProcessHasLeftIsRemovedWithTheNext) {
  const ScratchFolder used;
  const std::string prefix = used.path().substr(0, used.path().size() - 6);
  const std::string left = prefix + "killed", longer = prefix + "another";
  for (const std::string& path : {left, longer}) {
    fs::create_directory(path);
    std::ofstream(path + "/file") << "content";
  }
  const ScratchFolder next;
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(longer)) << "its name is no copy's of this machine";
  EXPECT_TRUE(fs::exists(used.path()));
  EXPECT_TRUE(fs::exists(next.path()));
}

TEST_F(Scratch, TheRunOfAUrlHasItsLastName) {
  JobConfig config;
  config.run_dir = "s3://bucket/runs/one";
  const std::string one = local_run_dir(config);
  EXPECT_THAT(one, StartsWith(default_path() + "/"));
  EXPECT_THAT(one, EndsWith("/one"));
  config.run_dir += "/";
  EXPECT_EQ(local_run_dir(config), one);
  config.run_dir = "s3://bucket/other/one";
  EXPECT_NE(local_run_dir(config), one);
}

TEST_F(Scratch, ALocalRunStaysWhereItIs) {
  JobConfig config;
  config.run_dir = "/runs/one";
  EXPECT_EQ(local_run_dir(config), "/runs/one");
  EXPECT_FALSE(fs::exists(default_path()));
}

}  // namespace
}  // namespace satrap::job
