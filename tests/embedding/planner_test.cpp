#include "satrap/embedding/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/embedding/random_bags.h"

namespace satrap::embedding {
namespace {

TEST(Planner, VectorsAreAsFarApartAsTheLayoutSays) {
  const std::vector<table::TableSpec> tables = {table_spec(0, 5)};
  const std::vector<job::FeatureSpec> features = {feature(0), feature(0, Pooling::kSequence, 3)};
  const data::Batch batch = batch_of({{{}, {3}}, {{}, {3, 3, 3, 3}}});
  const auto places = [&](std::int64_t column_multiple) {
    const FeatureLayout layout(features, tables, column_multiple);
    ThreadPool pool(1);
    BatchPlan plan;
    Planner(layout, pool).plan(batch, plan);
    return plan.output_offset;
  };
  EXPECT_THAT(places(1), ::testing::ElementsAre(20, 25, 30, 35));
  EXPECT_THAT(places(4), ::testing::ElementsAre(32, 40, 48, 56));
}

}  // namespace
}  // namespace satrap::embedding
