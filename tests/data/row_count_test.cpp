#include "satrap/data/row_count.h"

#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class RowCount : public FilesTest {
 protected:
  static std::string lines(int num_rows) {
    std::string text = "y,f\n";
    for (int i = 0; i < num_rows; ++i) text += "1,abc\n";
    return text;
  }
};

TEST_F(RowCount, LinesOfAllFilesCountWithoutHeaders) {
  DataConfig config = csv_config(write("a.csv", lines(3)), {}, {"f"});
  config.train.path.push_back(write("b.csv", "y,f\n0,x\nbad\n\n1,y"));
  EXPECT_EQ(count_rows(Dataset(config)), 7);
  EXPECT_EQ(estimate_rows(Dataset(config)), 7);
  config.train.max_rows = 5;
  EXPECT_EQ(count_rows(Dataset(config)), 5);
  EXPECT_EQ(estimate_rows(Dataset(config)), 5);
}

TEST_F(RowCount, OfALargeFileAFewMebibytesTellAbout) {
  const DataConfig config = csv_config(write("a.csv", lines(4'000'000)), {}, {"f"});
  EXPECT_NEAR(static_cast<double>(estimate_rows(Dataset(config))), 4e6, 4e4);
  EXPECT_EQ(count_rows(Dataset(config)), 4'000'000);
}

TEST_F(RowCount, CompressedFilesCountToo) {
  const DataConfig config = csv_config(write("a.csv.gz", gzip(lines(1000))), {}, {"f"});
  EXPECT_EQ(count_rows(Dataset(config)), 1000);
  EXPECT_EQ(estimate_rows(Dataset(config)), 1000);
}

TEST_F(RowCount, TheTailIsARoundedShareAndAtLeastARow) {
  DataConfig config = csv_config(write("a.csv", lines(16)), {}, {"f"});
  config.eval.fraction = 0.1;
  EXPECT_EQ(Dataset(config).first_eval_row(), 14);  // 1.6 are 2
  config.eval.fraction = 0.01;
  EXPECT_EQ(Dataset(config).first_eval_row(), 15);
  EXPECT_EQ(Dataset(config, {.first_eval_row = 3}).first_eval_row(), 3);
}

TEST_F(RowCount, ABatchFitsTheNumberOfRows) {
  EXPECT_EQ(fitting_batch_size(1), 32);
  EXPECT_EQ(fitting_batch_size(12'799), 32);
  EXPECT_EQ(fitting_batch_size(12'800), 64);
  EXPECT_EQ(fitting_batch_size(100'000), 256);
  EXPECT_EQ(fitting_batch_size(1'000'000'000), 2048);
  EXPECT_EQ(fitting_batch_size(0), 2048);
}

TEST_F(RowCount, ABatchSizeThatIsNotAutoStays) {
  DataConfig config = csv_config(write("a.csv", lines(13'000)), {}, {"f"});
  config.batch_size = 7;
  choose_batch_size(config);
  EXPECT_EQ(config.batch_size, 7);
  config.batch_size = 0;
  choose_batch_size(config);
  EXPECT_EQ(config.batch_size, 64);
  config.batch_size = 0;
  config.train.path = {path_of("missing.csv")};
  choose_batch_size(config);
  EXPECT_EQ(config.batch_size, 2048);
}

}  // namespace
}  // namespace satrap::data
