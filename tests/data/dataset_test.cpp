#include "satrap/data/dataset.h"

#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/data/open_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DatasetTest : public FilesTest {
 protected:
  DataConfig config_of(const std::string& train, const std::string& eval = "") const {
    DataConfig config = csv_config(path_of(train), {"n"}, {"f"});
    if (!eval.empty()) config.eval.path = {path_of(eval)};
    return config;
  }

  static std::vector<std::uint64_t> ids_of(const Dataset& data, Role role = Role::kTrain) {
    const auto source = open_batches(data, fixed_transforms(data.schema()), role, {});
    std::vector<std::uint64_t> ids;
    for (Batch batch; source->next(batch);) {
      ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
    }
    return ids;
  }
};

TEST_F(DatasetTest, OpensNothingUntilSomethingIsAskedFor) {
  const Dataset data(config_of("nowhere.csv", "*.none"));
  EXPECT_FALSE(data.is_generated());
  EXPECT_FALSE(data.is_topic());
  EXPECT_EQ(data.schema().features.size(), 1U);
  EXPECT_THAT(error_of([&] { data.training_files(); }, ErrorCode::kIo), HasSubstr("nowhere.csv"));
  EXPECT_THAT(error_of([&] { data.resolved(); }, ErrorCode::kIo), HasSubstr("nowhere.csv"));
  write("nowhere.csv", "y,n,f\n1,2,a\n");  // an error does not stay
  EXPECT_EQ(data.training_files().size(), 1U);
  EXPECT_THAT(error_of([&] { data.resolved(); }, ErrorCode::kIo), HasSubstr("*.none"));
}

TEST_F(DatasetTest, FilesThatComeLaterAreOfTheNextJob) {
  write("a1.csv", "y,n,f\n1,2,a\n");
  const Dataset data(config_of("a*.csv"));
  const Dataset copy = data;
  EXPECT_EQ(ids_of(data).size(), 1U);
  write("a2.csv", "y,n,f\n1,2,b\n");
  EXPECT_EQ(ids_of(data).size(), 1U);
  EXPECT_EQ(ids_of(copy).size(), 1U);
  EXPECT_EQ(ids_of(Dataset(data.config())).size(), 2U);
}

TEST_F(DatasetTest, ATailIsCountedOnce) {
  write("a.csv", "y,n,f\n1,1,a\n0,2,b\n1,3,c\n0,4,d\n");
  DataConfig config = config_of("a.csv");
  config.eval.fraction = 0.25;
  const Dataset data(config);
  EXPECT_EQ(data.first_eval_row(), 3);
  write("a.csv", "y,n,f\n1,1,a\n0,2,b\n1,3,c\n0,4,d\n1,5,e\n0,6,g\n1,7,h\n0,8,i\n");
  EXPECT_EQ(data.first_eval_row(), 3);
  EXPECT_EQ(Dataset(config, {.first_eval_row = 1}).first_eval_row(), 1);
  EXPECT_EQ(Dataset(config).first_eval_row(), 6);
}

TEST_F(DatasetTest, PathsOfARecordBeginInTheFolder) {
  write("a.csv", "y,n,f\n1,2,a\n");
  const Dataset data(config_of("a.csv"),
                     {.folder = std::filesystem::path(path_of("a.csv")).parent_path().string()});
  EXPECT_EQ(data.training_files().at(0).path, "a.csv");
  EXPECT_EQ(data.path_of("a.csv"), path_of("a.csv"));
  EXPECT_EQ(data.path_of("/other/a.csv"), "/other/a.csv");
  EXPECT_THAT(data.training_paths(), ElementsAre(path_of("a.csv")));
}

TEST_F(DatasetTest, OtherRanksReadTheFilesOfTheChief) {
  const std::string odd = path_of("\xff[1].csv");  // not UTF-8, and a pattern
  write("\xff[1].csv", "y,n,f\n1,1,a\n0,2,b\n1,3,c\n0,4,d\n");
  write("eval.csv", "y,n,f\n1,1,z\n");
  DataConfig config = config_of("*1*.csv", "eval.csv");
  const Dataset chief(config);
  const std::string resolved = chief.resolved();
  write("11.csv", "y,n,f\n1,2,e\n");  // has come since
  const Dataset rank = Dataset(config).as_resolved(resolved, 1);
  EXPECT_THAT(rank.training_paths(), ElementsAre(odd));
  EXPECT_EQ(ids_of(rank), ids_of(chief));
  EXPECT_EQ(ids_of(rank, Role::kEval), ids_of(chief, Role::kEval));
  EXPECT_EQ(rank.training_files(), chief.training_files());
  EXPECT_EQ(rank.resolved(), resolved);
}

TEST_F(DatasetTest, ARankThatSeesOtherFilesIsNamed) {
  write("a.csv", "y,n,f\n1,1,a\n0,2,b\n");
  write("eval.csv", "y,n,f\n1,1,z\n");
  const Dataset data(config_of("a.csv", "eval.csv"));
  const std::string resolved = data.resolved();
  write("eval.csv", "y,n,f\n1,1,zz\n");
  const auto error = [&](std::int64_t rank) {
    return error_of([&] { Dataset(data.config()).as_resolved(resolved, rank); },
                    ErrorCode::kInvalidConfig);
  };
  EXPECT_EQ(error(3), "rank 3 sees other data files than rank 0: '" + path_of("eval.csv") +
                          "' has 13 bytes here and 12 bytes there; all ranks must read the same "
                          "files");
  std::filesystem::remove(path_of("a.csv"));
  EXPECT_THAT(error(1), HasSubstr("rank 1 sees other data files than rank 0: data file '" +
                                  path_of("a.csv") + "': No such file"));
}

TEST_F(DatasetTest, ARankMayHaveTheJobInAnotherFolder) {
  std::filesystem::create_directory(path_of("here"));
  std::filesystem::create_directory(path_of("there"));
  write("here/a.csv", "y,n,f\n1,1,a\n0,2,b\n");
  write("there/a.csv", "y,n,f\n1,1,a\n0,2,b\n");
  const Dataset chief(config_of("here/a.csv"), {.folder = path_of("here")});
  const Dataset mine(config_of("there/a.csv"), {.folder = path_of("there")});
  EXPECT_THAT(mine.as_resolved(chief.resolved(), 1).training_paths(),
              ElementsAre(path_of("there/a.csv")));
}

TEST_F(DatasetTest, TheTailIsThatOfTheChief) {
  write("a.csv", "y,n,f\n1,1,a\n0,2,b\n1,3,c\n0,4,d\n");
  DataConfig config = config_of("a.csv");
  config.eval.fraction = 0.25;
  const std::string resolved = Dataset(config).resolved();
  config.eval.fraction = 0.5;  // shows that it does not count
  EXPECT_EQ(Dataset(config).as_resolved(resolved, 1).first_eval_row(), 3);
}

TEST_F(DatasetTest, WhatIsNotResolvedDataIsRefused) {
  write("a.csv", "y,n,f\n1,1,a\n0,2,b\n");
  const Dataset data(config_of("a.csv"));
  const std::string resolved = data.resolved();
  for (std::size_t size = 0; size < resolved.size(); ++size) {
    EXPECT_THROW(data.as_resolved(resolved.substr(0, size), 1), Error) << size;
  }
  EXPECT_THROW(data.as_resolved(resolved + "x", 1), Error);
}

TEST_F(DatasetTest, GeneratedRowsShareAGenerator) {
  DataConfig config;
  config.format = DataFormat::kSynthetic;
  config.batch_size = 100;
  config.synthetic.rows = 250;
  config.synthetic.cardinalities = {100, 1000};
  const Dataset data(config), copy = data;
  EXPECT_TRUE(data.is_generated());
  EXPECT_TRUE(data.training_files().empty());
  EXPECT_EQ(data.generator(), copy.generator());
  EXPECT_EQ(ids_of(Dataset(config).as_resolved(data.resolved(), 1)), ids_of(data));
}

TEST_F(DatasetTest, ThreadsFindTheSame) {
  write("a.csv", "y,n,f\n1,1,a\n0,2,b\n1,3,c\n0,4,d\n");
  DataConfig config = config_of("a.csv");
  config.eval.fraction = 0.25;
  const Dataset data(config);
  std::vector<std::thread> threads;
  std::vector<std::string> resolved(4);
  for (std::string& mine : resolved) threads.emplace_back([&] { mine = data.resolved(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(resolved.begin(), resolved.end()).size(), 1U);
}

TEST_F(DatasetTest, WithoutAPathTheKeyIsNamed) {
  const Dataset data((DataConfig()));
  const auto open = [&] { open_rows(data, Role::kTrain, {}); };
  EXPECT_THAT(error_of(open, ErrorCode::kInvalidConfig), HasSubstr("data.train.path: is not set"));
}

}  // namespace
}  // namespace satrap::data
