#include "satrap/embedding/table_rows.h"

#include <atomic>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/embedding/embedding_oracle.h"
#include "tests/embedding/random_bags.h"

namespace satrap::embedding {
namespace {

using ::testing::ElementsAre;

const BatchPlan& plan_of(const BatchRows& rows) {
  return static_cast<const PlannedRows&>(rows).plan();
}

/// Tables, the access to their rows, and the oracle, with the buffers of one step.
struct Training {
  Training(std::vector<table::TableSpec> specs,
           std::vector<job::FeatureSpec> features,
           std::int64_t num_threads = 1)
      : pool(num_threads) {
    for (table::TableSpec& spec : specs) {
      tables.push_back(std::make_unique<table::Table>(std::move(spec), kTablesSeed));
      pointers.push_back(tables.back().get());
    }
    access = std::make_unique<TableRows>(features, pointers, pool);
    planner = std::make_unique<Planner>(access->layout(), pool);
    rows = access->make_rows();
    oracle = std::make_unique<EmbeddingOracle>(features, pointers);
  }

  void plan(const data::Batch& batch) { rows->make_plan(*planner, batch, 1); }

  void forward(const data::Batch& batch) {
    // NaN wherever pooling forgets to write.
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    pooled.assign(static_cast<std::size_t>(batch.num_examples * access->layout().output_width),
                  kNan);
    mask.assign(static_cast<std::size_t>(batch.num_examples * access->layout().mask_width), kNan);
    rows->wait();
    const FeatureLayout& layout = access->layout();
    rows->pool(batch, host_matrix(std::span(pooled), batch.num_examples, layout.output_width),
               host_matrix(std::span(mask), batch.num_examples, layout.mask_width));
  }

  /// Forward and backward of a batch with gradients that depend on `step` only.
  void step(const data::Batch& batch, std::int64_t step_number) {
    plan(batch);
    forward(batch);
    std::minstd_rand random(static_cast<unsigned>(step_number));
    grad.resize(pooled.size());
    for (float& g : grad) g = std::uniform_real_distribution(-1.0F, 1.0F)(random);
    update(grad, step_number);
  }

  void update(const std::vector<float>& gradient, std::int64_t step_number) {
    const std::int64_t width = access->layout().output_width;
    rows->update(host_matrix(std::span(gradient), std::ssize(gradient) / width, width),
                 step_number);
  }

  void expect_rows_equal_oracle() {
    std::int64_t num_rows = 0;
    for (const table::Table* table : pointers) {
      num_rows += table->num_rows();
      table->for_each_row([&](const std::byte* row) {
        RowHeader header;
        std::memcpy(&header, row, sizeof(header));
        const auto it = oracle->rows().find(header.key);
        ASSERT_NE(it, oracle->rows().end());
        std::vector<float> expected = it->second.weights;
        expected.insert(expected.end(), it->second.state.begin(), it->second.state.end());
        std::vector<float> values(expected.size());
        table->layout().read_weights(row, values.data());
        std::memcpy(values.data() + it->second.weights.size(), row + table->layout().state_offset,
                    4 * it->second.state.size());
        EXPECT_EQ(values, expected);
      });
    }
    EXPECT_EQ(num_rows, static_cast<std::int64_t>(oracle->rows().size()));
  }

  ThreadPool pool;
  std::vector<std::unique_ptr<table::Table>> tables;
  std::vector<table::Table*> pointers;
  std::unique_ptr<TableRows> access;
  std::unique_ptr<Planner> planner;
  std::unique_ptr<BatchRows> rows;
  std::unique_ptr<EmbeddingOracle> oracle;
  std::vector<float> pooled, mask, grad;
};

TEST(TableRows, SumsTheRowsOfABag) {
  table::TableSpec spec = table_spec(0, 2, RowOptimizerType::kSgd);
  spec.init = {.type = table::InitType::kConstant, .scale = 1.0F};
  Training s({spec}, {feature(0)});
  const data::Batch batch = batch_of({{{5}, {}, {5, 6, 5}}});
  s.plan(batch);
  s.forward(batch);
  EXPECT_THAT(s.pooled, ElementsAre(1, 1, 0, 0, 3, 3));

  // Row 5 gets the gradient of row 0 once and that of row 2 twice; lr is 0.1.
  s.update(std::vector<float>{1, 2, 100, 100, 10, 20}, 1);
  s.forward(batch);
  EXPECT_THAT(s.pooled, ElementsAre(::testing::FloatEq(-1.1F), ::testing::FloatEq(-3.2F), 0, 0,
                                    ::testing::FloatEq(2 * -1.1F + 0.0F),
                                    ::testing::FloatEq(2 * -3.2F - 1.0F)));
}

TEST(TableRows, PlanListsUniqueKeysAndTheirOccurrencesInOrder) {
  Training s({table_spec(0, 4), table_spec(1, 8)}, {feature(1), feature(0), feature(1)});
  const data::Batch batch = batch_of({{{9}, {9, 4}}, {{9}, {}}, {{4}, {9}}});
  s.plan(batch);
  const BatchPlan& plan = plan_of(*s.rows);
  ASSERT_EQ(plan.num_unique(), 3);
  EXPECT_EQ(plan.keys[0], make_key(TableId{0}, 9));
  EXPECT_TRUE(std::is_sorted(plan.keys.begin(), plan.keys.end()));
  const bool nine_first = make_key(TableId{1}, 9) < make_key(TableId{1}, 4);
  const std::vector<std::int32_t> nines = {0, 1, 5}, fours = {2, 4};
  std::vector<std::int32_t> expected = {3};
  for (const auto* part : {nine_first ? &nines : &fours, nine_first ? &fours : &nines}) {
    expected.insert(expected.end(), part->begin(), part->end());
  }
  EXPECT_EQ(plan.occurrences, expected);
  EXPECT_EQ(plan.segments.back(), 6);
  EXPECT_EQ(plan.ranges.size(), 3U);
  EXPECT_EQ(plan.update_units.front(), 0);
  EXPECT_EQ(plan.update_units.back(), 3);
}

TEST(TableRows, EmptyBatchMakesNoRows) {
  Training s({table_spec(0, 4)}, {feature(0), feature(0)});
  for (const data::Batch& batch : {batch_of({{{}, {}}, {{}, {}}}), batch_of({{}, {}})}) {
    s.step(batch, 1);
    EXPECT_EQ(plan_of(*s.rows).num_unique(), 0);
    EXPECT_EQ(s.pooled, std::vector<float>(s.pooled.size(), 0.0F));
  }
  EXPECT_EQ(s.tables[0]->num_rows(), 0);
}

struct RandomCase {
  RowOptimizerType optimizer;
  std::int64_t dim;
  bool weighted;
  std::int64_t num_rows, max_bag;
  std::uint64_t num_ids;
  FloatType weights = FloatType::kFp32;
};

class TableRowsAgainstOracle : public ::testing::TestWithParam<RandomCase> {};

TEST_P(TableRowsAgainstOracle, GivesTheSameBits) {
  const RandomCase c = GetParam();
  std::vector<table::TableSpec> specs = {table_spec(0, c.dim, c.optimizer), table_spec(1, 8),
                                         table_spec(2, 3, c.optimizer)};
  specs[0].optimizer.weight_decay = 0.01F;
  specs[0].weights = specs[2].weights = c.weights;
  specs[0].init = {.type = table::InitType::kNormal, .scale = 0.1F};
  const std::vector<job::FeatureSpec> features = {
      feature(0, Pooling::kSum),   feature(1, Pooling::kMean), feature(0, Pooling::kSequence, 4),
      feature(2, Pooling::kSqrtN), feature(0, Pooling::kMean), feature(2, Pooling::kSequence, 1)};
  for (const std::int64_t num_threads : {1, 3}) {
    Training s(specs, features, num_threads);
    std::mt19937_64 random(11);
    for (std::int64_t step = 1; step <= 4; ++step) {
      const data::Batch batch =
          random_batch(random, std::ssize(features), c.num_rows, c.max_bag, c.num_ids, c.weighted);
      s.step(batch, step);
      ASSERT_EQ(s.pooled, s.oracle->forward(batch)) << "step " << step;
      ASSERT_EQ(s.mask, s.oracle->mask(batch));
      s.oracle->backward(batch, s.grad, step);
    }
    s.expect_rows_equal_oracle();
  }
}

using enum RowOptimizerType;
INSTANTIATE_TEST_SUITE_P(
    Cases,
    TableRowsAgainstOracle,
    ::testing::Values(RandomCase{kSgd, 16, false, 37, 5, 100},
                      RandomCase{kAdagrad, 64, true, 129, 3, 50},
                      RandomCase{kRowwiseAdagrad, 17, true, 20, 8, 1000},
                      RandomCase{kAdam, 32, false, 64, 2, 9},
                      RandomCase{kFtrl, 5, true, 300, 3, 200},
                      RandomCase{kAdagrad, 1, false, 1, 2000, 5},  // long bags of few ids
                      RandomCase{kSgd, 8, true, 2000, 12, 50000},  // tables in several buckets
                      RandomCase{kAdagrad, 16, true, 129, 3, 50, FloatType::kBf16},
                      RandomCase{kRowwiseAdagrad, 17, true, 64, 8, 100, FloatType::kFp16},
                      RandomCase{kFtrl, 5, false, 300, 3, 200, FloatType::kBf16}));

TEST(TableRows, ReadingLeavesTablesAsTheyAre) {
  std::vector<table::TableSpec> specs = {table_spec(0, 4), table_spec(1, 6)};
  specs[1].weights = FloatType::kBf16;
  Training s(specs, {feature(0), feature(1, Pooling::kMean)});
  const data::Batch known = batch_of({{{1}, {2}}, {{1}, {}}});
  s.step(known, 1);
  const data::Batch mixed = batch_of({{{1, 77}, {78}}, {{1, 79, 79}, {80}}});
  s.rows->read(*s.planner, mixed);
  EXPECT_EQ(s.tables[0]->num_rows(), 2);
  EXPECT_EQ(s.tables[1]->num_rows(), 1);
  s.forward(mixed);
  const std::vector<float> without = s.pooled;
  s.plan(mixed);
  s.forward(mixed);
  EXPECT_EQ(without, s.pooled);
  EXPECT_EQ(s.tables[0]->num_rows(), 4);
}

TEST(TableRows, PlansOfLaterBatchesMayBeMadeDuringForwardAndBackward) {
  const std::vector<table::TableSpec> specs = {table_spec(0, 16), table_spec(1, 8)};
  const std::vector<job::FeatureSpec> features = {feature(0), feature(1),
                                                  feature(0, Pooling::kMean)};
  constexpr std::int64_t kSteps = 30;
  std::mt19937_64 random(5);
  std::vector<data::Batch> batches;
  for (std::int64_t i = 0; i < kSteps; ++i) {
    batches.push_back(random_batch(random, 3, 64, 3, 3000, false));
  }
  Training ahead(specs, features, 2);
  std::vector<std::unique_ptr<BatchRows>> all(kSteps);
  for (auto& rows : all) rows = ahead.access->make_rows();
  std::atomic<std::int64_t> planned = 0;
  std::thread planner([&] {
    for (std::int64_t i = 0; i < kSteps; ++i) {
      all[static_cast<std::size_t>(i)]->make_plan(*ahead.planner,
                                                  batches[static_cast<std::size_t>(i)], i + 1);
      planned.store(i + 1);
      planned.notify_one();
    }
  });
  Training serial(specs, features, 1);
  for (std::int64_t i = 0; i < kSteps; ++i) {
    const data::Batch& batch = batches[static_cast<std::size_t>(i)];
    serial.step(batch, i + 1);
    for (std::int64_t seen = planned.load(); seen <= i; seen = planned.load()) planned.wait(seen);
    ahead.rows = std::move(all[static_cast<std::size_t>(i)]);
    ahead.forward(batch);
    ASSERT_EQ(ahead.pooled, serial.pooled);
    ahead.update(serial.grad, i + 1);
  }
  planner.join();
}

TEST(TableRows, RefusesABatchOfAnotherShape) {
  Training s({table_spec(0, 4)}, {feature(0), feature(0)});
  EXPECT_THROW(s.plan(batch_of({{{1}}})), Error);
}

}  // namespace
}  // namespace satrap::embedding
