#include "satrap/data/shared_files.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SharedFiles : public FilesTest {
 protected:
  static DataConfig job(std::vector<std::string> train, std::vector<std::string> eval) {
    DataConfig config;
    config.format = "csv";
    config.train.path = std::move(train);
    config.eval.path = std::move(eval);
    return config;
  }
  const std::string train_ = write("train.csv", "y,a\n1,2\n0,3\n");
  const std::string other_ = write("other.csv", "y,a\n1,2\n0,4\n");
};

TEST_F(SharedFiles, AreTheSameFileInOtherWords) {
  std::filesystem::create_symlink(train_, path_of("link.csv"));
  for (const std::string& path :
       {train_, path_of("./train.csv"), path_of("link.csv"), path_of("tr*.csv")}) {
    EXPECT_THAT(shared_files(job({other_, train_}, {path})), testing::SizeIs(1)) << path;
  }
}

TEST_F(SharedFiles, AreCopies) {
  const std::string copy = write("copy.csv", "y,a\n1,2\n0,3\n");
  EXPECT_EQ(shared_files(job({train_}, {other_, copy})), std::vector<std::string>{copy});
}

TEST_F(SharedFiles, AreNoneOfOtherContentOrSize) {
  const std::string longer = write("longer.csv", "y,a\n1,2\n0,3\n0,3\n");
  EXPECT_THAT(shared_files(job({train_}, {other_, longer})), IsEmpty());
  EXPECT_THAT(shared_files(job({train_}, {})), IsEmpty());
}

TEST_F(SharedFiles, AreNoneOfAPartOfTheRows) {
  DataConfig config = job({train_}, {});
  config.eval.fraction = 0.5;
  EXPECT_THAT(shared_files(config), IsEmpty());
}

TEST_F(SharedFiles, WhatCannotBeReadIsLeftToItsReader) {
  EXPECT_THAT(shared_files(job({train_, path_of("none")}, {path_of("none"), path_of("")})),
              IsEmpty());
  EXPECT_THAT(shared_files(job({"-"}, {"-"})), IsEmpty());
}

TEST_F(SharedFiles, AreNamedWithWhatToDo) {
  EXPECT_THAT(
      describe_shared_files({"day_1.csv"}),
      testing::AllOf(HasSubstr("'day_1.csv'"), HasSubstr("data.eval"), Not(HasSubstr("more"))));
  EXPECT_THAT(describe_shared_files({"a", "b", "c"}), HasSubstr("'a' and 2 more"));
}

}  // namespace
}  // namespace satrap::data
