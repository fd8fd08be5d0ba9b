#include "src/trainer/appended_file.h"

#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "tests/support/temporary_directory.h"

namespace satrap::trainer {
namespace {

using testing::HasSubstr;

/// Files of this process have at most so many bytes while it lives, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*const handler_)(int);
  rlimit before_{};
};

class AppendedFileTest : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/metrics.jsonl"; }
  const TemporaryDirectory folder_;
};

TEST_F(AppendedFileTest, GrowsByPiecesAndKeepsWhatWasThere) {
  write_file_atomic(path(), "before\n");
  AppendedFile file(path());
  file.append("one\n");
  EXPECT_EQ(read_file(path()), "before\none\n");
  file.append("");
  file.append("two\n");
  file.finish();
  EXPECT_EQ(read_file(path()), "before\none\ntwo\n");
  EXPECT_EQ(file.waiting(), "");
}

TEST_F(AppendedFileTest, WhatFindsNoRoomWaitsAsAWhole) {
  const std::string one(3000, '1'), two(3000, '2'), three = "3\n", four = "4\n";
  AppendedFile file(path());
  file.append(one);
  testing::internal::CaptureStderr();  // in a file, too
  {
    const FullDisk full(4000);
    file.append(two);
    EXPECT_EQ(read_file(path()), one) << "without the bytes that fit";
    file.append(three);
    EXPECT_EQ(file.waiting(), two + three);
    EXPECT_THROW(file.finish(), Error);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("warning " + path() + ": cannot be written: File too large; what is"));
  EXPECT_EQ(log.find("warning"), log.rfind("warning")) << log;
  file.append(four);
  EXPECT_EQ(read_file(path()), one + two + three + four);
  EXPECT_EQ(file.waiting(), "");
}

TEST_F(AppendedFileTest, NotEverythingWaits) {
  AppendedFile file(path());
  const FullDisk full(1000);
  testing::internal::CaptureStderr();
  const std::string piece(9 << 20, 'x');
  file.append(piece);
  EXPECT_THROW(file.append(piece), Error);
  testing::internal::GetCapturedStderr();
}

TEST_F(AppendedFileTest, ThatCannotBeOpenedIsNamed) {
  try {
    const AppendedFile file(folder_.path() + "/none/metrics.jsonl");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.what(),
                HasSubstr("/none/metrics.jsonl: cannot be opened for writing: No such"));
  }
}

}  // namespace
}  // namespace satrap::trainer
