#include "src/data/file_format.h"

#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

FileFormat format_of_names(const std::vector<std::string>& names, const std::string& format) {
  FileList files;
  for (const std::string& name : names) files.files.push_back({.path = name});
  return format_of(format, files);
}

TEST(FileFormat, NamesSayItWhateverPacksThem) {
  for (const char* const name : {"a.jsonl", "a.ndjson", "a.json", "a.jsonl.gz", "day_*.json.zst"}) {
    EXPECT_EQ(format_of("auto", std::string(name)), FileFormat::kJson) << name;
  }
  EXPECT_EQ(format_of("auto", std::string("a.svm")), FileFormat::kLibsvm);
  EXPECT_EQ(format_of("auto", std::string("a.libsvm.gz")), FileFormat::kLibsvm);
  EXPECT_EQ(format_of("auto", std::string("a.ffm")), FileFormat::kLibffm);
  EXPECT_EQ(format_of("auto", std::string("a.libffm")), FileFormat::kLibffm);
  EXPECT_EQ(format_of("auto", std::string("a.parquet")), FileFormat::kParquet);
  EXPECT_EQ(format_of("auto", std::string("a.arrow")), FileFormat::kArrow);
  EXPECT_EQ(format_of("auto", std::string("a.feather")), FileFormat::kArrow);
  EXPECT_EQ(format_of("auto", std::string("a.ipc")), FileFormat::kArrow);
  for (const char* const name : {"-", "a.csv", "a.gz", "jsonl", "a.json.bak"}) {
    EXPECT_EQ(format_of("auto", std::string(name)), FileFormat::kDelimited) << name;
  }
}

TEST(FileFormat, TheConfigurationOverrulesNames) {
  EXPECT_EQ(format_of_names({"a.csv", "b.jsonl"}, "json"), FileFormat::kJson);
  EXPECT_EQ(format_of_names({"a.jsonl", "b.parquet"}, "csv"), FileFormat::kDelimited);
}

TEST(FileFormat, FilesOfSeveralAreRefused) {
  const std::string error =
      error_of([] { format_of_names({"a.jsonl", "b.csv"}, "auto"); }, ErrorCode::kInvalidConfig);
  EXPECT_TRUE(contains(error, "'a.jsonl' is JSON lines and 'b.csv' is text in columns")) << error;
}

TEST(FileFormat, ParquetIsNotReadFromPipes) {
  FileList files{.files = {{.path = "a.parquet"}}, .rereadable = false};
  const std::string error = error_of([&] { format_of("auto", files); }, ErrorCode::kInvalidConfig);
  EXPECT_TRUE(contains(error, "Parquet is read from files alone")) << error;
}

}  // namespace
}  // namespace satrap::data
