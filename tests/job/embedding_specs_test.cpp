#include "satrap/job/embedding_specs.h"

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/job/tiny_job.h"

namespace satrap::job {
namespace {

EmbeddingSpecs specs_of(const JobConfig& config) {
  return embedding_specs(config, data::resolve_schema(config.data));
}

TEST(EmbeddingSpecs, HaveATableForEachFeatureOfTheSchema) {
  JobConfig config = tiny_job("run");
  config.seed = 5;
  const EmbeddingSpecs specs = specs_of(config);
  EXPECT_EQ(specs.seed, 5U);
  ASSERT_EQ(specs.tables.size(), 4U);
  ASSERT_EQ(specs.features.size(), 4U);
  for (std::size_t t = 0; t < specs.tables.size(); ++t) {
    EXPECT_EQ(static_cast<std::size_t>(specs.tables[t].id), t);
    EXPECT_EQ(specs.tables[t].dim, 8);
  }
}

TEST(EmbeddingSpecs, AWidePartTakesOneWeightMore) {
  JobConfig config = tiny_job("run");
  config.model = {};
  config.model.type = ModelType::kDeepFm;
  EXPECT_EQ(specs_of(config).tables[0].dim, 9);
}

TEST(EmbeddingSpecs, RowsOfAllStepsInFlightArePinned) {
  JobConfig config = tiny_job("run");
  config.train.mode = TrainMode::kHybrid;
  config.train.staleness = 6;
  for (const table::TableSpec& table : specs_of(config).tables) {
    EXPECT_EQ(table.limits.pinned_steps, config.train.max_in_flight());
    EXPECT_GE(table.limits.pinned_steps, 6);
  }
}

TEST(EmbeddingSpecs, WhatTheSchemaLacksIsRefused) {
  JobConfig config = tiny_job("run");
  config.features["no_such_feature"];
  try {
    specs_of(config);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_NE(std::string(error.what()).find("no_such_feature"), std::string::npos);
  }
}

}  // namespace
}  // namespace satrap::job
