#include "src/prepare/folder_lock.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "tests/support/temporary_directory.h"

namespace satrap::prepare {
namespace {

TEST(FolderLock, IsForOneAtATimeAndNamesTheHolder) {
  const TemporaryDirectory folder;
  std::optional<FolderLock> first(folder.path());
  try {
    const FolderLock second(folder.path());
    FAIL() << "locked twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    const std::string process = "in use by process " + std::to_string(::getpid());
    EXPECT_NE(std::string(error.what()).find(process), std::string::npos) << error.what();
  }
  first.reset();
  EXPECT_EQ(read_file(folder.path() + "/" + FolderLock::kFile), "");
  EXPECT_NO_THROW(FolderLock(folder.path()));
}

TEST(FolderLock, WhatAKilledHolderLeftIsNoLock) {
  const TemporaryDirectory folder;
  const std::string file = folder.path() + "/" + FolderLock::kFile;
  write_file_atomic(file, "process 1 on a host of a very long name");
  const FolderLock lock(folder.path());
  EXPECT_EQ(read_file(file).find("process " + std::to_string(::getpid())), 0);
  EXPECT_EQ(read_file(file).find("a very long name"), std::string::npos);
}

TEST(FolderLock, MissingFolderIsAnError) { EXPECT_THROW(FolderLock("/nonexistent"), Error); }

}  // namespace
}  // namespace satrap::prepare
