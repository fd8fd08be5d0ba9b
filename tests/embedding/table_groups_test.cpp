#include "satrap/embedding/table_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/table/table.h"
#include "tests/embedding/random_bags.h"

namespace satrap::embedding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kSeed = 5;

std::vector<table::TableSpec> equal_tables(std::int64_t num_tables) {
  std::vector<table::TableSpec> specs;
  for (std::int64_t t = 0; t < num_tables; ++t) specs.push_back(table_spec(t, 8));
  return specs;
}

std::vector<std::int64_t> numbers(const std::vector<TableId>& tables) {
  std::vector<std::int64_t> numbers;
  for (const TableId table : tables) numbers.push_back(static_cast<std::int64_t>(table));
  return numbers;
}

TEST(TableGroups, WithoutTablesThereAreNone) {
  const TableGroups groups({}, {}, kSeed);
  EXPECT_THAT(groups.groups(), IsEmpty());
  groups.fill_steps(1, {});
}

TEST(TableGroups, OneTableIsAGroupWithTheFeaturesThatReadIt) {
  table::TableSpec spec = table_spec(0, 5, RowOptimizerType::kFtrl);
  spec.weights = FloatType::kBf16;
  const TableGroups groups({feature(0), feature(0, Pooling::kSequence, 3)}, {spec}, kSeed);
  ASSERT_EQ(groups.groups().size(), 1U);
  const TableGroup& group = groups.groups()[0];
  EXPECT_THAT(numbers(group.tables), ElementsAre(0));
  EXPECT_THAT(group.features, ElementsAre(0, 1));
  EXPECT_EQ(group.optimizer, RowOptimizerType::kFtrl);
  EXPECT_EQ(group.layout.dim, 5);
  EXPECT_EQ(group.layout.weight_type, FloatType::kBf16);
  EXPECT_EQ(group.layout.row_bytes, spec.layout().row_bytes);
}

TEST(TableGroups, EqualTablesAreOneGroupWhateverElseTheyDifferIn) {
  std::vector<table::TableSpec> specs = equal_tables(3);
  specs[1].optimizer.lr = 7.0F;
  specs[1].optimizer.initial_accumulator = 1.0F;
  specs[1].schedule.warmup_steps = 10;
  specs[2].init.scale = 3.0F;
  const TableGroups groups({feature(2), feature(0)}, specs, kSeed);
  ASSERT_EQ(groups.groups().size(), 1U);
  EXPECT_THAT(numbers(groups.groups()[0].tables), ElementsAre(0, 1, 2));
  EXPECT_THAT(groups.groups()[0].features, ElementsAre(0, 1));
}

TEST(TableGroups, TablesThatDifferInOneThingOfThreeAreGroupsOfTheirOwn) {
  std::vector<table::TableSpec> specs = equal_tables(4);
  specs[1].dim = 7;  // the same width on a device, but another optimizer's mean
  specs[2].weights = FloatType::kFp16;
  specs[3].optimizer.type = RowOptimizerType::kSgd;
  const TableGroups groups({feature(3), feature(1), feature(1)}, specs, kSeed);
  ASSERT_EQ(groups.groups().size(), 4U);
  for (std::size_t g = 0; g < 4; ++g) {
    EXPECT_THAT(numbers(groups.groups()[g].tables), ElementsAre(g));
    EXPECT_EQ(groups.group_of(static_cast<TableId>(g)), g);
  }
  EXPECT_THAT(groups.groups()[0].features, IsEmpty());  // nothing reads its table
  EXPECT_THAT(groups.groups()[1].features, ElementsAre(1, 2));
  EXPECT_THAT(groups.groups()[3].features, ElementsAre(0));
}

TEST(TableGroups, AreInTheOrderOfTheirFirstTables) {
  std::vector<table::TableSpec> specs = equal_tables(5);
  specs[0].dim = specs[3].dim = 64;
  specs[2].dim = 4;
  const TableGroups groups({feature(4), feature(3), feature(2), feature(1), feature(0)}, specs,
                           kSeed);
  ASSERT_EQ(groups.groups().size(), 3U);
  EXPECT_THAT(numbers(groups.groups()[0].tables), ElementsAre(0, 3));
  EXPECT_THAT(numbers(groups.groups()[1].tables), ElementsAre(1, 4));
  EXPECT_THAT(numbers(groups.groups()[2].tables), ElementsAre(2));
  EXPECT_THAT(groups.groups()[0].features, ElementsAre(1, 4));
  EXPECT_THAT(groups.groups()[1].features, ElementsAre(0, 3));
  EXPECT_EQ(groups.group_of(TableId{4}), 1U);
}

TEST(TableGroups, EveryTableHasTheStepOfItsOwnRateScheduleAndSeed) {
  std::vector<table::TableSpec> specs = equal_tables(3);
  specs[0].optimizer.lr = 0.5F;
  specs[0].schedule.warmup_steps = 4;
  specs[1].optimizer.weight_decay = 0.25F;
  std::vector<TableStep> steps(3, specs[0].table_step(0, 9));
  TableGroups({}, specs, kSeed).fill_steps(2, steps);
  EXPECT_EQ(steps[0].step.lr, 0.25F);
  EXPECT_EQ(steps[1].step.lr, 0.1F);
  EXPECT_EQ(steps[0].step.weight_decay, 0.0F);
  EXPECT_EQ(steps[1].step.weight_decay, 0.25F);
  for (std::size_t t = 0; t < 3; ++t) {
    const table::Table table(specs[t], kSeed);
    EXPECT_EQ(steps[t].rounding_seed, table.table_step(2).rounding_seed);
    EXPECT_EQ(steps[t].number, 2U);
  }
  EXPECT_NE(steps[1].rounding_seed, steps[2].rounding_seed);
}

template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TableGroups, WhatADeviceCannotHaveIsRefusedByTheNameOfTheTable) {
  const auto group = [](const std::vector<table::TableSpec>& specs) {
    return message_of([&] { TableGroups({}, specs, kSeed); });
  };
  std::vector<table::TableSpec> specs = equal_tables(2);
  specs[1].dim = 1025;
  EXPECT_THAT(group(specs),
              HasSubstr("table 't1': rows on a device have 1 to 1024 weights, not 1025"));
  EXPECT_EQ(group(equal_tables(1023)), "no error");
  EXPECT_THAT(group(equal_tables(1024)),
              HasSubstr("table 't1023': a job on a device has at most 1023 tables"));
}

TEST(TableGroups, RefusesTablesOutOfOrderAndStepsThatDoNotFit) {
  std::vector<table::TableSpec> specs = equal_tables(2);
  const TableGroups groups({}, specs, kSeed);
  std::vector<TableStep> steps(2, specs[0].table_step(0, 1));
  EXPECT_THROW(groups.fill_steps(0, steps), Error);
  EXPECT_THROW(groups.fill_steps(1, std::span(steps).first(1)), Error);
  EXPECT_THROW(groups.group_of(TableId{2}), Error);
  EXPECT_THROW(TableGroups({feature(2)}, specs, kSeed), Error);
  std::swap(specs[0], specs[1]);
  EXPECT_THROW(TableGroups({}, specs, kSeed), Error);
}

}  // namespace
}  // namespace satrap::embedding
