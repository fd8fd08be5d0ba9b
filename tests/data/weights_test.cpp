// Weights of rows (data.schema.weight).

#include <cmath>
#include <limits>

#include "satrap/core/log.h"
#include "satrap/data/inspect.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/validate.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using Floats = std::vector<float>;

class WeightsTest : public FilesTest {
 protected:
  WeightsTest() { set_log_level(LogLevel::kOff); }
  ~WeightsTest() override { set_log_level(LogLevel::kInfo); }

  DataConfig config_of(const std::string& text, const std::string& name = "log.csv") const {
    DataConfig config = csv_config(write(name, text), {"n"}, {});
    config.eval.path = config.train.path;
    config.schema.weight = "w";
    return config;
  }

  struct Read {
    Floats numeric, weights;
    std::int64_t bad_rows = 0;
    std::map<std::string, std::int64_t> reasons;
  };
  static Read read(const DataConfig& config, Role role = Role::kTrain) {
    const Schema schema = resolve_schema(config);
    const auto source = open_batches(Dataset(config), fixed_transforms(schema), role, {});
    Read all;
    for (Batch batch; source->next(batch);) {
      all.numeric.insert(all.numeric.end(), batch.numeric.begin(), batch.numeric.end());
      all.weights.insert(all.weights.end(), batch.weights.begin(), batch.weights.end());
    }
    all.bad_rows = source->stats().bad_rows;
    all.reasons = source->bad_row_reasons();
    return all;
  }
};

TEST_F(WeightsTest, AreThoseOfTheRows) {
  const Read all = read(config_of("y,w,n\n1,2.5,7\n0,1,8\n1,1e-3,9\n0,true,10\n"));
  EXPECT_EQ(all.numeric, (Floats{7, 8, 9, 10}));
  EXPECT_EQ(all.weights, (Floats{2.5F, 1, 1e-3F, 1}));
}

TEST_F(WeightsTest, WithoutAColumnThereAreNone) {
  DataConfig config = config_of("y,w,n\n1,2.5,7\n");
  config.schema.weight = "";
  EXPECT_EQ(read(config).weights, Floats());
}

TEST_F(WeightsTest, ARowOfWeightZeroIsEvaluatedAndNotTrainedOn) {
  const DataConfig config = config_of("y,w,n\n1,0,7\n0,2,8\n1,0.0,9\n0,-0,10\n1,1,11\n");
  EXPECT_EQ(read(config).numeric, (Floats{8, 11}));
  EXPECT_EQ(read(config).bad_rows, 0);
  const Read evaluated = read(config, Role::kEval);
  EXPECT_EQ(evaluated.numeric, (Floats{7, 8, 9, 10, 11}));
  EXPECT_EQ(evaluated.weights, (Floats{0, 2, 0, 0, 1}));
}

TEST_F(WeightsTest, WhatIsNoWeightMakesABadRow) {
  DataConfig config = config_of("y,w,n\n1,-1,1\n0,inf,2\n1,,3\n0,nan,4\n1,x,5\n0,1e39,6\n1,3,7\n");
  config.max_bad_rows = "0";
  const Read all = read(config);
  EXPECT_EQ(all.numeric, (Floats{7}));
  EXPECT_EQ(all.bad_rows, 6);
  EXPECT_EQ(all.reasons.at("column 'w': the weight is missing"), 2);
  EXPECT_EQ(all.reasons.at("column 'w': expected a weight of at least 0, and at most 1e20"), 1);
}

TEST_F(WeightsTest, AColumnMayBeWeightAndInput) {
  DataConfig config = config_of("y,w,n\n1,2,7\n0,3,8\n");
  config.schema.numeric.emplace_back().name = "w";
  const Read all = read(config);
  EXPECT_EQ(all.numeric, (Floats{7, 2, 8, 3}));
  EXPECT_EQ(all.weights, (Floats{2, 3}));
  EXPECT_EQ(read(config, Role::kPredict).numeric, (Floats{7, 2, 8, 3}));
}

TEST_F(WeightsTest, PredictionsNeedNone) {
  DataConfig config = config_of("n\n7\n8\n");
  EXPECT_EQ(read(config, Role::kPredict).numeric, (Floats{7, 8}));
  EXPECT_EQ(read(config, Role::kPredict).weights, Floats());
  EXPECT_TRUE(contains(error_of([&] { read(config, Role::kEval); }, ErrorCode::kInvalidConfig),
                       "there is no column"));
  config.schema.header = false;
  config.schema.columns = {"y", "w", "n"};
  config.eval.path = {write("bare.csv", "7\n8\n")};
  EXPECT_EQ(read(config, Role::kPredict).numeric, (Floats{7, 8}));
}

TEST_F(WeightsTest, JsonHasThemToo) {
  DataConfig config = config_of(R"({"y": 1, "w": 2.5, "n": 7}
{"y": 0, "w": 0, "n": 8}
{"y": 0, "w": null, "n": 9}
{"y": 0, "n": 10, "w": 1}
)",
                                "log.jsonl");
  config.max_bad_rows = "0";
  const Read all = read(config);
  EXPECT_EQ(all.numeric, (Floats{7, 10}));
  EXPECT_EQ(all.weights, (Floats{2.5F, 1}));
  EXPECT_EQ(all.bad_rows, 1);
}

TEST_F(WeightsTest, OfPositivesAreThoseOfAnInlineSchemaToo) {
  for (const DataFormat format : {DataFormat::kCriteo, DataFormat::kSynthetic}) {
    DataConfig config;
    config.format = format;
    if (format == DataFormat::kCriteo) config.train.path = {write("log.tsv", "")};
    config.schema.label.positive_weight = 3;
    EXPECT_TRUE(contains(error_of([&] { validate(config, {}); }, ErrorCode::kInvalidConfig),
                         "data.schema"));
  }
}

TEST_F(WeightsTest, TheLabelIsNoWeight) {
  DataConfig config = config_of("y,w,n\n1,2,7\n");
  config.schema.weight = "y";
  EXPECT_TRUE(contains(error_of([&] { validate(config, {}); }, ErrorCode::kInvalidConfig),
                       "data.schema.weight: column 'y' is the label's"));
}

TEST_F(WeightsTest, TheLookAtTheDataSaysWhatTheColumnIs) {
  const DataConfig config = config_of("y,w,n\n1,2,7\n");
  EXPECT_TRUE(contains(describe_columns(Dataset(config), Role::kTrain), "weight of the row"));
}

}  // namespace
}  // namespace satrap::data
