#include "src/data/columnar/parquet.h"

#include <gtest/gtest.h>

#include "satrap/data/parquet_support.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using ParquetTest = FilesTest;

TEST_F(ParquetTest, WhatIsNoParquetIsRefusedWithoutTheLibrary) {
  const std::string text = write("text.parquet", "y,price\n1,2\n");
  EXPECT_EQ(error_of([&] { open_parquet(text); }),
            "'" + text +
                "' is neither a Parquet file nor an Arrow file: it begins with neither PAR1 " +
                "nor ARROW1");
  for (const std::string content : {"PAR1", "PAR1PAR1", "PAR1 some rows"}) {
    const std::string cut = write("cut.parquet", content);
    EXPECT_TRUE(contains(error_of([&] { open_parquet(cut); }),
                         "'" + cut + "' is an incomplete Parquet file: it does not end with PAR1"));
  }
  for (const std::string content : {"ARROW1", "ARROW1ARROW1", "ARROW1 some rows"}) {
    const std::string cut = write("cut.arrow", content);
    EXPECT_TRUE(contains(error_of([&] { open_parquet(cut); }),
                         "'" + cut + "' is an incomplete Arrow file: it does not end with ARROW1"));
  }
  const std::string none = path_of("none.parquet");
  EXPECT_EQ(error_of([&] { open_parquet(none); }, ErrorCode::kIo),
            "cannot open data file '" + none + "': No such file or directory");
}

TEST_F(ParquetTest, ABuildWithoutItSaysWhatToInstall) {
  try {
    describe_parquet();
  } catch (const Error& error) {
    const std::string path = write("x.parquet", "PAR1........PAR1");
    const std::string refusal = error_of([&] { open_parquet(path); }, ErrorCode::kUnavailable);
    EXPECT_EQ(refusal, "'" + path + "' is a Parquet file: " + error.what());
    EXPECT_TRUE(contains(refusal, "run ./launch/setup.sh parquet, configure and build again"));
    return;
  }
  GTEST_SKIP() << "this build has Parquet";
}

}  // namespace
}  // namespace satrap::data
