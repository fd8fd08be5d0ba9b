#include "satrap/data/data_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "satrap/data/open_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class ListTrainingFiles : public FilesTest {};

TEST_F(ListTrainingFiles, HasSizesAndTimesInReadingOrder) {
  DataConfig config = csv_config(path_of("*.csv"), {}, {"s"});
  write("b2.csv", "12345");
  write("a1.csv", "123");
  const timespec times[] = {{0, 0}, {7, 9}};
  ASSERT_EQ(utimensat(AT_FDCWD, path_of("a1.csv").c_str(), times, 0), 0);
  const std::vector<DataFile> files = Dataset(config).training_files();
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0],
            (DataFile{.path = path_of("a1.csv"), .bytes = 3, .modified_ns = 7'000'000'009}));
  EXPECT_EQ(files[1].path, path_of("b2.csv"));
  EXPECT_EQ(files[1].bytes, 5);
  EXPECT_FALSE(files[1].was_opened());
}

TEST_F(ListTrainingFiles, APipeHasNoIdentityAndIsNotOpened) {
  ASSERT_EQ(mkfifo(path_of("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(Dataset(csv_config(path_of("pipe"), {}, {"s"})).training_files().at(0).is_regular());
  EXPECT_FALSE(Dataset(csv_config("-", {}, {"s"})).training_files().at(0).is_regular());
}

TEST_F(ListTrainingFiles, GeneratedRowsHaveNone) {
  DataConfig config;
  config.format = DataFormat::kSynthetic;
  EXPECT_TRUE(Dataset(config).training_files().empty());
}

}  // namespace
}  // namespace satrap::data
