#include "src/data/terms/file_format.h"

#include <string>

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

TEST(FileFormat, NamesSayItWhateverPacksThem) {
  for (const char* const name : {"a.jsonl", "a.ndjson", "a.json", "a.jsonl.gz", "day_*.json.zst"}) {
    EXPECT_EQ(format_of(DataFormat::kAuto, std::string(name)), FileFormat::kJson) << name;
  }
  EXPECT_EQ(format_of(DataFormat::kAuto, std::string("a.svm")), FileFormat::kLibsvm);
  EXPECT_EQ(format_of(DataFormat::kAuto, std::string("a.libsvm.gz")), FileFormat::kLibsvm);
  EXPECT_EQ(format_of(DataFormat::kAuto, std::string("a.ffm")), FileFormat::kLibffm);
  EXPECT_EQ(format_of(DataFormat::kAuto, std::string("a.libffm")), FileFormat::kLibffm);
  EXPECT_EQ(format_of(DataFormat::kAuto, std::string("a.parquet")), FileFormat::kParquet);
  EXPECT_EQ(format_of(DataFormat::kAuto, std::string("a.arrow")), FileFormat::kArrow);
  EXPECT_EQ(format_of(DataFormat::kAuto, std::string("a.feather")), FileFormat::kArrow);
  EXPECT_EQ(format_of(DataFormat::kAuto, std::string("a.ipc")), FileFormat::kArrow);
  for (const char* const name : {"-", "a.csv", "a.gz", "jsonl", "a.json.bak"}) {
    EXPECT_EQ(format_of(DataFormat::kAuto, std::string(name)), FileFormat::kDelimited) << name;
  }
}

TEST(FileFormat, TheConfigurationOverrulesNames) {
  EXPECT_EQ(format_of(DataFormat::kJson, std::string("a.csv")), FileFormat::kJson);
  EXPECT_EQ(format_of(DataFormat::kCsv, std::string("a.parquet")), FileFormat::kDelimited);
}

}  // namespace
}  // namespace satrap::data
