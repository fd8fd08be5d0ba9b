#include "src/data/files/file_list.h"

#include <sys/stat.h>

#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class FileListTest : public FilesTest {};

TEST_F(FileListTest, AGlobIsSortedNaturally) {
  for (const char* name : {"day_10.tsv", "day_2.tsv", "day_1.tsv", "other"}) write(name, "12345");
  const FileList files = list_files({path_of("day_*.tsv")});
  EXPECT_EQ(files.paths(), (std::vector<std::string>{path_of("day_1.tsv"), path_of("day_2.tsv"),
                                                     path_of("day_10.tsv")}));
  EXPECT_EQ(files.total_bytes, 15);
  EXPECT_TRUE(files.rereadable);
}

TEST_F(FileListTest, PatternsKeepTheirOrder) {
  write("b", "1");
  write("a", "1");
  EXPECT_EQ(list_files({path_of("b"), path_of("a*")}).paths(),
            (std::vector<std::string>{path_of("b"), path_of("a")}));
}

TEST_F(FileListTest, AnExistingFileIsTakenByItsNameEvenWithGlobCharacters) {
  write("a[1].tsv", "1");
  EXPECT_EQ(list_files({path_of("a[1].tsv")}).paths().size(), 1U);
}

TEST_F(FileListTest, StandardInputIsReadOnce) {
  const FileList files = list_files({"-"});
  EXPECT_EQ(files.paths(), std::vector<std::string>{"-"});
  EXPECT_FALSE(files.rereadable);
  EXPECT_EQ(files.total_bytes, 0);
  error_of([] { list_files({"-", "a"}); }, ErrorCode::kInvalidConfig);
}

TEST_F(FileListTest, APipeIsReadOnce) {
  ASSERT_EQ(mkfifo(path_of("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(list_files({path_of("pipe")}).rereadable);
}

TEST_F(FileListTest, EveryProblemNamesTheFile) {
  const auto message = [](const std::string& pattern) {
    return error_of([&] { list_files({pattern}); }, ErrorCode::kIo);
  };
  EXPECT_TRUE(contains(message(path_of("none")), path_of("none")));
  EXPECT_TRUE(contains(message(path_of("none*")), "no data file matches"));
  EXPECT_TRUE(contains(message(path_of("")), "is a directory"));
  EXPECT_TRUE(contains(message(write("empty", "")), "is empty"));
}

TEST(NaturalLess, ComparesRunsOfDigitsAsNumbers) {
  EXPECT_TRUE(natural_less("a2", "a10"));
  EXPECT_FALSE(natural_less("a10", "a2"));
  EXPECT_TRUE(natural_less("a2b3", "a2b20"));
  EXPECT_TRUE(natural_less("a", "a1"));
  EXPECT_TRUE(natural_less("a01", "a1"));  // equal as numbers, so compared as text
  EXPECT_FALSE(natural_less("a1", "a01"));
  EXPECT_FALSE(natural_less("a1", "a1"));
  EXPECT_TRUE(natural_less("a99999999999999999998", "a99999999999999999999"));
}

FileFormat format_of_names(const std::vector<std::string>& names, DataFormat format) {
  FileList files;
  for (const std::string& name : names) files.files.push_back({.path = name});
  return format_of(format, files);
}

TEST(FormatOfFiles, TheConfigurationOverrulesNames) {
  EXPECT_EQ(format_of_names({"a.csv", "b.jsonl"}, DataFormat::kJson), FileFormat::kJson);
  EXPECT_EQ(format_of_names({"a.jsonl", "b.parquet"}, DataFormat::kCsv), FileFormat::kDelimited);
}

TEST(FormatOfFiles, FilesOfSeveralAreRefused) {
  const std::string error = error_of(
      [] { format_of_names({"a.jsonl", "b.csv"}, DataFormat::kAuto); }, ErrorCode::kInvalidConfig);
  EXPECT_TRUE(contains(error, "'a.jsonl' is JSON lines and 'b.csv' is text in columns")) << error;
}

TEST(FormatOfFiles, ParquetIsNotReadFromPipes) {
  FileList files{.files = {{.path = "a.parquet"}}, .rereadable = false};
  const std::string error =
      error_of([&] { format_of(DataFormat::kAuto, files); }, ErrorCode::kInvalidConfig);
  EXPECT_TRUE(contains(error, "Parquet is read from files alone")) << error;
}

}  // namespace
}  // namespace satrap::data
