#include "satrap/data/file_name.h"

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

TEST(FileName, OfDataEndsAsAFormatTextInColumnsOrAPackedFile) {
  for (const char* name :
       {"a.jsonl", "a.svm", "b/a.parquet", "a.csv", "a.data", "a.txt.gz", "a.zst"}) {
    EXPECT_TRUE(is_data_name(name)) << name;
  }
  for (const char* name : {"", "job.yaml", "job.yml", "csv", "a.csv.yaml"}) {
    EXPECT_FALSE(is_data_name(name)) << name;
  }
}

}  // namespace
}  // namespace satrap::data
