#include "satrap/embedding/reduce_gradients.h"

#include <map>

#include <gtest/gtest.h>

#include "satrap/embedding/planner.h"
#include "tests/embedding/random_bags.h"

namespace satrap::embedding {
namespace {

using Gradients = std::map<Key, std::vector<float>>;

/// Sums of a batch's gradient by key.
class Reduction {
 public:
  Reduction(std::vector<job::FeatureSpec> features, std::vector<table::TableSpec> tables)
      : layout_(features, tables) {
    for (const table::TableSpec& table : tables) dims_.push_back(table.dim);
  }

  std::int64_t width() const { return layout_.output_width; }
  const FeatureLayout& layout() const { return layout_; }

  Gradients reduce(const data::Batch& batch,
                   const std::vector<float>& grad_pooled,
                   std::int64_t num_threads = 1) {
    ThreadPool pool(num_threads);
    BatchPlan plan;
    Planner(layout_, pool).plan(batch, plan);
    std::vector<std::vector<float>> sums;
    for (const Key key : plan.keys) {
      sums.emplace_back(static_cast<std::size_t>(dims_[static_cast<std::size_t>(table_of(key))]),
                        -9.0F);
    }
    std::vector<float*> out;
    for (std::vector<float>& sum : sums) out.push_back(sum.data());
    reduce_gradients(plan, dims_, grad_pooled.data(), out, scratch_, pool);
    Gradients gradients;
    for (std::size_t u = 0; u < sums.size(); ++u) gradients[plan.keys[u]] = sums[u];
    return gradients;
  }

 private:
  const FeatureLayout layout_;
  std::vector<std::int64_t> dims_;
  std::vector<float> scratch_;
};

Key key_in(std::int64_t table, std::uint64_t id) {
  return make_key(static_cast<TableId>(table), id);
}

TEST(ReduceGradients, OfAnEmptyBatchThereAreNone) {
  Reduction reduction({feature(0)}, {table_spec(0, 2)});
  EXPECT_TRUE(reduction.reduce(batch_of({{{}, {}}}), {1, 2, 3, 4}).empty());
}

TEST(ReduceGradients, AKeyGetsTheSumOfItsOccurrences) {
  Reduction reduction({feature(0)}, {table_spec(0, 2)});
  const Gradients gradients =
      reduction.reduce(batch_of({{{5}, {6}, {5, 5}}}), {1, 2, 10, 20, 100, 200});
  EXPECT_EQ(gradients, (Gradients{{key_in(0, 5), {201, 402}}, {key_in(0, 6), {10, 20}}}));
}

TEST(ReduceGradients, OccurrencesHaveTheirCoefficients) {
  Reduction reduction({feature(0, Pooling::kMean)}, {table_spec(0, 1)});
  const Gradients gradients = reduction.reduce(batch_of({{{1, 2, 2, 3}, {1}}}), {8, 100});
  EXPECT_EQ(gradients,
            (Gradients{{key_in(0, 1), {102}}, {key_in(0, 2), {4}}, {key_in(0, 3), {2}}}));
}

TEST(ReduceGradients, FeaturesThatShareATableAddUpAndTablesStayApart) {
  Reduction reduction({feature(0), feature(1), feature(0)}, {table_spec(0, 1), table_spec(1, 2)});
  const Gradients gradients = reduction.reduce(batch_of({{{7}}, {{7}}, {{7}}}), {1, 10, 20, 100});
  EXPECT_EQ(gradients, (Gradients{{key_in(0, 7), {101}}, {key_in(1, 7), {10, 20}}}));
}

TEST(ReduceGradients, RoomForAnotherNumberOfKeysIsABug) {
  const FeatureLayout layout({feature(0)}, {table_spec(0, 1)});
  ThreadPool pool(1);
  BatchPlan plan;
  Planner(layout, pool).plan(batch_of({{{1}}}), plan);
  std::vector<float> scratch;
  const float grad = 1.0F;
  const std::vector<std::int64_t> dims = {1};
  EXPECT_THROW(reduce_gradients(plan, dims, &grad, {}, scratch, pool), Error);
}

TEST(ReduceGradients, AgreesWithPlainSumsForAnyNumberOfThreads) {
  std::mt19937_64 random(1);
  const std::vector<job::FeatureSpec> features = {feature(0), feature(1),
                                                  feature(0, Pooling::kSequence, 3)};
  Reduction reduction(features, {table_spec(0, 8), table_spec(1, 5)});
  for (int round = 0; round < 5; ++round) {
    // Small whole numbers: every order of a sum gives the same float.
    const data::Batch batch = random_batch(random, 3, 200, 4, 50, true);
    std::vector<float> grad(static_cast<std::size_t>(batch.num_examples * reduction.width()));
    for (float& g : grad) g = static_cast<float>(random() % 9) - 4.0F;
    Gradients expected;
    for (std::size_t f = 0; f < features.size(); ++f) {
      const PlacedFeature& placed = reduction.layout().features[f];
      const auto dim = static_cast<std::size_t>(placed.dim);
      for (std::int64_t r = 0; r < batch.num_examples; ++r) {
        const auto bag =
            f * static_cast<std::size_t>(batch.num_examples) + static_cast<std::size_t>(r);
        for (std::int64_t i = batch.offsets[bag]; i < batch.offsets[bag + 1]; ++i) {
          const bool is_sequence = features[f].pooling == Pooling::kSequence;
          const std::int64_t element = is_sequence ? i - batch.offsets[bag] : 0;
          if (element >= features[f].max_length) continue;
          const auto at = static_cast<std::size_t>(i);
          std::vector<float>& sum = expected[make_key(features[f].table, batch.ids[at])];
          sum.resize(dim);
          const auto from = static_cast<std::size_t>(r * reduction.width() + placed.column) +
                            static_cast<std::size_t>(element) * dim;
          for (std::size_t d = 0; d < dim; ++d) sum[d] += batch.id_weights[at] * grad[from + d];
        }
      }
    }
    EXPECT_EQ(reduction.reduce(batch, grad, 1), expected);
    EXPECT_EQ(reduction.reduce(batch, grad, 3), expected);
  }
}

}  // namespace
}  // namespace satrap::embedding
