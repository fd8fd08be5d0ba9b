#include "src/data/files/file_records.h"

#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>

#include "satrap/data/file_prefix.h"
#include "src/data/files/file_list.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class FileRecordsTest : public FilesTest {
 protected:
  FileRecordsTest() {
    write("a", "first\n");
    write("b", "second\n");
  }

  /// Runs `body`; returns what it logs.
  static std::string log_of(const std::function<void()>& body) {
    testing::internal::CaptureStderr();
    body();
    return testing::internal::GetCapturedStderr();
  }

  static std::string checksum(const std::string& path, const std::string& text) {
    return examine_prefix(path, std::ssize(text)).checksum;
  }

  FileRecords make() const { return FileRecords(list_files({path_of("a"), path_of("b")}).files); }
};

TEST_F(FileRecordsTest, AFileIsWhatItWasWhenItWasOpened) {
  FileRecords records = make();
  EXPECT_FALSE(records.files()[0].was_opened());
  write("a", "rewritten\n");  // after it was listed, before it is opened
  EXPECT_EQ(log_of([&] {
              records.begin(0, 0);
              records.end(0, 1);
              records.begin(1, 1);
            }),
            "");
  const std::vector<DataFile> files = records.files();
  EXPECT_EQ(files[0].bytes, 10);
  EXPECT_EQ(files[0].checksum, checksum(path_of("a"), "rewritten\n"));
  EXPECT_EQ(files[0].first_row, 0);
  EXPECT_EQ(files[0].num_rows, 1);
  EXPECT_EQ(files[1].first_row, 1);
  EXPECT_EQ(files[1].num_rows, -1);  // not read to its end
}

TEST_F(FileRecordsTest, OneThatGrowsWhileItIsReadHasBeenReadToItsNewEnd) {
  FileRecords records = make();
  records.begin(0, 0);
  write("a", "first\nfirst and a half\n");
  EXPECT_TRUE(contains(log_of([&] { records.end(0, 2); }),
                       path_of("a") + "' has grown while it was read: 6 bytes -> 23 bytes"));
  EXPECT_EQ(records.files()[0].bytes, 23);
  EXPECT_EQ(records.files()[0].checksum, checksum(path_of("a"), "first\nfirst and a half\n"));
  EXPECT_EQ(records.files()[0].num_rows, 2);
}

TEST_F(FileRecordsTest, OneThatChangesWhileItIsReadRemainsWhatItWas) {
  FileRecords records = make();
  records.begin(0, 0);
  const DataFile before = records.files()[0];
  write("a", "another\n");
  EXPECT_TRUE(contains(log_of([&] { records.end(0, 1); }),
                       path_of("a") + "' has changed while it was read: 6 bytes -> 8 bytes"));
  EXPECT_EQ(records.files()[0].checksum, before.checksum);
  EXPECT_EQ(records.files()[0].bytes, 6);
}

TEST_F(FileRecordsTest, OneThatIsRemovedWhileItIsReadRemainsToo) {
  FileRecords records = make();
  records.begin(0, 0);
  std::filesystem::remove(path_of("a"));
  EXPECT_TRUE(contains(log_of([&] { records.end(0, 1); }), "was removed while it was read"));
  EXPECT_EQ(records.files()[0].bytes, 6);
}

TEST_F(FileRecordsTest, ATouchIsNoChangeUnlessTheMiddleMayHaveChanged) {
  const std::string large(3 * kChecksumBytes, 'x');
  for (const std::string& text : {std::string("first\n"), large}) {
    write("a", text);
    FileRecords records = make();
    records.begin(0, 0);
    const timespec times[] = {{0, 0}, {7, 9}};
    ASSERT_EQ(utimensat(AT_FDCWD, path_of("a").c_str(), times, 0), 0);
    const std::string log = log_of([&] { records.end(0, 1); });
    EXPECT_EQ(contains(log, "was modified while it was read"), text == large);
  }
}

TEST_F(FileRecordsTest, TheNextFileBeginsWhereOneEnds) {
  FileRecords records = make();
  records.begin(0, 0);
  records.end(0, 4);
  EXPECT_EQ(records.files()[1].first_row, 4);
  EXPECT_FALSE(records.files()[1].was_opened());
}

TEST_F(FileRecordsTest, AChangeBetweenTwoEpochsIsAWarning) {
  FileRecords records = make();
  records.begin(0, 0);
  records.end(0, 1);
  EXPECT_EQ(log_of([&] { records.begin(0, 0); }), "");
  write("a", "other\n");
  EXPECT_TRUE(contains(log_of([&] { records.begin(0, 0); }),
                       path_of("a") + "' has changed since it was last read"));
  EXPECT_EQ(records.files()[0].checksum, checksum(path_of("a"), "other\n"));
}

TEST_F(FileRecordsTest, WhatHasNoIdentityOnlyHasRows) {
  FileRecords records(std::vector<DataFile>{{.path = "-"}});
  records.begin(0, 0);
  records.end(0, 7);
  EXPECT_FALSE(records.files()[0].was_opened());
  EXPECT_EQ(records.files()[0].num_rows, 7);
}

TEST_F(FileRecordsTest, AMissingFileIsUpToItsReader) {
  FileRecords records = make();
  std::filesystem::remove(path_of("a"));
  EXPECT_EQ(log_of([&] { records.begin(0, 0); }), "");
  EXPECT_FALSE(records.files()[0].was_opened());
}

}  // namespace
}  // namespace satrap::data
