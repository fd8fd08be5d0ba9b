#include "satrap/data/common_files.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CommonFiles : public FilesTest {
 protected:
  static DataConfig job(std::vector<std::string> train, std::vector<std::string> eval) {
    DataConfig config;
    config.format = DataFormat::kCsv;
    config.train.path = std::move(train);
    config.eval.path = std::move(eval);
    return config;
  }
  const std::string train_ = write("train.csv", "y,a\n1,2\n0,3\n");
  const std::string other_ = write("other.csv", "y,a\n1,2\n0,4\n");
};

TEST_F(CommonFiles, AreTheSameFileInOtherWords) {
  std::filesystem::create_symlink(train_, path_of("link.csv"));
  for (const std::string& path :
       {train_, path_of("./train.csv"), path_of("link.csv"), path_of("tr*.csv")}) {
    EXPECT_THAT(common_files(Dataset(job({other_, train_}, {path}))), testing::SizeIs(1)) << path;
  }
}

TEST_F(CommonFiles, AreCopies) {
  const std::string copy = write("copy.csv", "y,a\n1,2\n0,3\n");
  EXPECT_EQ(common_files(Dataset(job({train_}, {other_, copy}))), std::vector<std::string>{copy});
}

TEST_F(CommonFiles, AreNoneOfOtherContentOrSize) {
  const std::string longer = write("longer.csv", "y,a\n1,2\n0,3\n0,3\n");
  EXPECT_THAT(common_files(Dataset(job({train_}, {other_, longer}))), IsEmpty());
  EXPECT_THAT(common_files(Dataset(job({train_}, {}))), IsEmpty());
}

TEST_F(CommonFiles, AreNoneOfAPartOfTheRows) {
  DataConfig config = job({train_}, {});
  config.eval.fraction = 0.5;
  EXPECT_THAT(common_files(Dataset(config)), IsEmpty());
}

TEST_F(CommonFiles, WhatCannotBeReadIsLeftToItsReader) {
  EXPECT_THAT(common_files(Dataset(job({train_, path_of("none")}, {path_of("none"), path_of("")}))),
              IsEmpty());
  EXPECT_THAT(common_files(Dataset(job({"-"}, {"-"}))), IsEmpty());
}

TEST_F(CommonFiles, AreNamedWithWhatToDo) {
  EXPECT_THAT(
      describe_common_files({"day_1.csv"}),
      testing::AllOf(HasSubstr("'day_1.csv'"), HasSubstr("data.eval"), Not(HasSubstr("more"))));
  EXPECT_THAT(describe_common_files({"a", "b", "c"}), HasSubstr("'a' and 2 more"));
}

}  // namespace
}  // namespace satrap::data
