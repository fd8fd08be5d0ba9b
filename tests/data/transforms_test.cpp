#include "satrap/data/transforms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "satrap/core/hash.h"
#include "src/data/passes/batch_assembler.h"
#include "src/data/rows/row_filler.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

/// One block of one number per row.
class OneColumn : public RowBlockSource {
 public:
  explicit OneColumn(std::vector<double> values) : values_(std::move(values)) {}

  bool next(RowBlock& block) override {
    block.clear(1, 0);
    if (given_ || values_.empty()) return false;
    given_ = true;
    block.num_rows = static_cast<std::int64_t>(values_.size());
    block.labels.assign(values_.size(), 0.0F);
    block.numeric[0] = values_;
    return true;
  }

 private:
  std::vector<double> values_;
  bool given_ = false;
};

Schema schema_of(const NumericConfig& input) {
  DataConfig config = csv_config("x", {}, {});
  config.schema.numeric = {input};
  return resolve_schema(config);
}

Schema schema_of(const FeatureConfig& feature) {
  DataConfig config = csv_config("x", {}, {});
  config.schema.features = {feature};
  return resolve_schema(config);
}

Batch batch_of(const Schema& schema,
               const FittedTransforms& transforms,
               const std::vector<double>& values) {
  RowBlock block;
  OneColumn(values).next(block);
  const RowPiece piece{&block, 0, block.num_rows};
  Batch batch;
  BatchAssembler(schema, transforms).assemble({&piece, 1}, batch);
  return batch;
}

FittedTransforms fit(const Schema& schema,
                     const std::vector<double>& values,
                     std::int64_t max_rows = 0) {
  OneColumn rows(values);
  return fit_transforms(schema, rows, max_rows, 1);
}

NumericConfig input_with(Transform transform) {
  NumericConfig input;
  input.name = "n";
  input.transform = transform;
  return input;
}

FeatureConfig range_feature(std::int64_t quantiles, std::vector<double> boundaries) {
  FeatureConfig feature;
  feature.name = "f";
  feature.buckets = {.quantiles = quantiles, .boundaries = std::move(boundaries)};
  return feature;
}

TEST(Transforms, SignedLog1pIsOddAndGoesThroughZero) {
  EXPECT_EQ(signed_log1p(0.0), 0.0);
  EXPECT_DOUBLE_EQ(signed_log1p(std::exp(1.0) - 1.0), 1.0);
  EXPECT_EQ(signed_log1p(-3.0), -signed_log1p(3.0));
}

TEST(Transforms, NoneAndLog1pNeedNoData) {
  const Schema schema = schema_of(input_with(Transform::kLog1p));
  const Batch batch = batch_of(schema, fixed_transforms(schema), {0, -1, kMissing});
  EXPECT_EQ(batch.numeric, (std::vector<float>{0, static_cast<float>(signed_log1p(-1)), 0}));
}

TEST(Transforms, ClipComesFirstAndFillLast) {
  NumericConfig input = input_with(Transform::kLog1p);
  input.clip = {0, 10};
  input.fill = -7;
  const Schema schema = schema_of(input);
  const Batch batch = batch_of(schema, fixed_transforms(schema), {-5, 20, kMissing});
  EXPECT_EQ(batch.numeric, (std::vector<float>{0, static_cast<float>(signed_log1p(10)), -7}));
}

TEST(Transforms, AnIndicatorSaysWhereAValueIsMissing) {
  NumericConfig input = input_with(Transform::kNone);
  input.missing_indicator = true;
  const Schema schema = schema_of(input);
  const Batch batch = batch_of(schema, fixed_transforms(schema), {4, kMissing});
  EXPECT_EQ(batch.num_numeric, 2);
  EXPECT_EQ(batch.numeric, (std::vector<float>{4, 0, 0, 1}));
}

TEST(Transforms, AZScoreHasMeanZeroAndDeviationOne) {
  const Schema schema = schema_of(input_with(Transform::kZscore));
  const std::vector<double> values = {1, 3, kMissing, 5, 7};  // mean 4, variance 5
  const FittedTransforms transforms = fit(schema, values);
  EXPECT_DOUBLE_EQ(transforms.scales[0].mean, 4.0);
  EXPECT_DOUBLE_EQ(transforms.scales[0].stddev, std::sqrt(5.0));
  const Batch batch = batch_of(schema, transforms, values);
  EXPECT_FLOAT_EQ(batch.numeric[0], static_cast<float>(-3.0 / std::sqrt(5.0)));
  EXPECT_EQ(batch.numeric[2], 0.0F);
}

TEST(Transforms, AZScoreMayFollowALogarithm) {
  const Schema schema = schema_of(input_with(Transform::kLog1pZscore));
  const double e = std::exp(1.0);
  const FittedTransforms transforms = fit(schema, {0, e * e - 1});  // 0 and 2 after log1p
  EXPECT_NEAR(transforms.scales[0].mean, 1.0, 1e-6);
  EXPECT_NEAR(transforms.scales[0].stddev, 1.0, 1e-6);
}

TEST(Transforms, AConstantColumnIsNotDividedByZero) {
  const Schema schema = schema_of(input_with(Transform::kZscore));
  EXPECT_EQ(batch_of(schema, fit(schema, {5, 5, 5}), {5, 6}).numeric, (std::vector<float>{0, 1}));
  EXPECT_EQ(batch_of(schema, fit(schema, {kMissing}), {5, kMissing}).numeric,
            (std::vector<float>{5, 0}));
}

Schema by_rule(std::int64_t rule, Schema schema) {
  schema.text.value_rule = rule;
  return schema;
}

/// Seconds of a minute: as floats, most have the same value.
TEST(Transforms, TimesThatAreNearStayApart) {
  std::vector<double> seconds;
  for (int i = 0; i < 60; ++i) seconds.push_back(1.76e9 + i);
  const auto num_inputs = [&](const Schema& schema) {
    const Batch batch = batch_of(schema, fit(schema, seconds), seconds);
    return std::set<float>(batch.numeric.begin(), batch.numeric.end()).size();
  };
  const Schema schema = schema_of(input_with(Transform::kZscore));
  EXPECT_EQ(num_inputs(schema), 60U);
  EXPECT_LE(num_inputs(by_rule(1, schema)), 2U);
  NumericConfig clipped = input_with(Transform::kZscore);
  clipped.clip = {1.76e9 + 10, 1.76e9 + 29};
  EXPECT_EQ(num_inputs(schema_of(clipped)), 20U);
}

/// Milliseconds, and dates as yyyymmdd, of which two neighbours are one float.
TEST(Transforms, ScaledInputsAreThoseOfDoubles) {
  const std::vector<double> dates = {20180130, 20180131, 20180201, 1.7643168e12, 1.764316800001e12};
  const Schema schema = schema_of(input_with(Transform::kZscore));
  const FittedTransforms transforms = fit(schema, dates);
  const Batch batch = batch_of(schema, transforms, dates);
  for (std::size_t i = 0; i < dates.size(); ++i) {
    const double expected = (dates[i] - transforms.scales[0].mean) / transforms.scales[0].stddev;
    EXPECT_EQ(batch.numeric[i], static_cast<float>(expected));
  }
}

TEST(Transforms, ByRule1EachResultIsRounded) {
  NumericConfig config = input_with(Transform::kLog1pZscore);
  config.clip = {0.1, 0.7};
  const Schema schema = by_rule(1, schema_of(config));
  const std::vector<double> values = {0.1, 0.3, 0.5, 0.7, 0.9};
  const FittedTransforms transforms = fit(schema, values);
  const Batch batch = batch_of(schema, transforms, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double clipped =
        std::clamp(static_cast<float>(values[i]), static_cast<float>(0.1), static_cast<float>(0.7));
    const double log = static_cast<float>(signed_log1p(clipped));
    EXPECT_EQ(batch.numeric[i],
              static_cast<float>((log - transforms.scales[0].mean) / transforms.scales[0].stddev));
  }
}

TEST(Transforms, OnlyTheFirstRowsAreFitted) {
  const Schema schema = schema_of(input_with(Transform::kZscore));
  EXPECT_EQ(fit(schema, {1, 3, 1000}, 2).scales[0].mean, 2.0);
  EXPECT_TRUE(contains(error_of([&] { fit(schema, {}); }), "no rows to fit"));
}

TEST(Buckets, BoundariesBelongToTheRangeAbove) {
  const Schema schema = schema_of(range_feature(0, {0, 0.1, 10}));
  const Batch batch =
      batch_of(schema, fixed_transforms(schema), {-1, 0, 0.05, 0.1, kMissing, 10, 1e9});
  EXPECT_EQ(batch.ids, (std::vector<std::uint64_t>{0, 1, 1, 2, 3, 3}));
  EXPECT_EQ(batch.offsets, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 4, 5, 6}));
}

/// Every decimal of up to three digits is in the range that begins with it; of 0.7 and the next
/// smaller double only the first is. By rule 1 both are the same float.
TEST(Buckets, BoundariesAreNotRounded) {
  std::vector<double> decimals;
  for (int i = 1; i < 1000; ++i)
    decimals.push_back(std::stod("0." + std::to_string(1000 + i).substr(1)));
  const Schema schema = schema_of(range_feature(0, decimals));
  const Batch batch = batch_of(schema, fixed_transforms(schema), decimals);
  for (std::size_t i = 0; i < decimals.size(); ++i) EXPECT_EQ(batch.ids[i], i + 1) << decimals[i];
  const Schema one = schema_of(range_feature(0, {0.7}));
  const std::vector<double> near = {std::nextafter(0.7, 0), 0.7};
  EXPECT_EQ(batch_of(one, fixed_transforms(one), near).ids, (std::vector<std::uint64_t>{0, 1}));
  const Schema old = by_rule(1, one);
  EXPECT_EQ(batch_of(old, fixed_transforms(old), near).ids, (std::vector<std::uint64_t>{1, 1}));
}

TEST(Buckets, AMissingNumberMayHaveAnIdOfItsOwn) {
  FeatureConfig feature = range_feature(0, {0});
  feature.missing = MissingId::kOwnId;
  const Schema schema = schema_of(feature);
  EXPECT_EQ(batch_of(schema, fixed_transforms(schema), {1, kMissing}).ids,
            (std::vector<std::uint64_t>{1, kMissingId}));
}

TEST(Buckets, QuantilesHoldEqualShares) {
  const Schema schema = schema_of(range_feature(4, {}));
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<double>(i * 7919 % 1000));
  const FittedTransforms transforms = fit(schema, values);
  EXPECT_EQ(transforms.boundaries[0], (std::vector<double>{250, 500, 750}));
  std::vector<int> counts(4);
  for (const std::uint64_t id : batch_of(schema, transforms, values).ids) {
    ++counts[static_cast<std::size_t>(id)];
  }
  EXPECT_EQ(counts, (std::vector<int>{250, 250, 250, 250}));
}

TEST(Buckets, AFrequentValueIsOneRange) {
  const Schema schema = schema_of(range_feature(10, {}));
  std::vector<double> values(900, 0.0);
  for (int i = 1; i <= 100; ++i) values.push_back(static_cast<double>(i));
  EXPECT_EQ(fit(schema, values).boundaries[0], std::vector<double>{1});
  EXPECT_TRUE(fit(schema, {kMissing}).boundaries[0].empty());
}

TEST(Buckets, QuantilesOfManyRowsComeFromASample) {
  const Schema schema = schema_of(range_feature(2, {}));
  std::vector<double> values;
  for (int i = 0; i < 1'000'000; ++i) values.push_back(static_cast<double>(i % 10'007));
  const FittedTransforms transforms = fit(schema, values);
  EXPECT_NEAR(transforms.boundaries[0][0], 5003.0, 60.0);  // 2.5 standard errors
  EXPECT_EQ(transforms.boundaries, fit(schema, values).boundaries);
}

constexpr double kDayMs = 86'400'000;

/// A block of these numbers and bags.
RowBlock block_of(std::vector<std::vector<double>> numbers, std::vector<RowBlock::Bags> bags = {}) {
  RowBlock block;
  block.num_rows = std::ssize(numbers.empty() ? std::vector<double>(2) : numbers.front());
  block.labels.assign(static_cast<std::size_t>(block.num_rows), 0.0F);
  block.numeric = std::move(numbers);
  block.bags = std::move(bags);
  return block;
}

Batch batch_of(const Schema& schema, const RowBlock& block) {
  const RowPiece piece{&block, 0, block.num_rows};
  Batch batch;
  BatchAssembler(schema, fixed_transforms(schema)).assemble({&piece, 1}, batch);
  return batch;
}

TEST(Ages, AreTheTimeBetweenTwoColumnsBeforeTheirTransform) {
  DataConfig config = csv_config("x", {"age"}, {});
  config.schema.numeric[0].column = "now";
  config.schema.numeric[0].since = "then";
  config.schema.numeric[0].clip = {-1, 10};
  config.schema.numeric[0].missing_indicator = true;
  config.schema.numeric[0].fill = 7;
  const RowBlock block = block_of(
      {{3 * kDayMs, 0, 0, kMissing, 90 * kDayMs}, {1.5 * kDayMs, kDayMs * 2, kMissing, 0, 0}});
  const Batch batch = batch_of(resolve_schema(config), block);
  EXPECT_EQ(batch.numeric, (std::vector<float>{1.5, 0, -1, 0, 7, 1, 7, 1, 10, 0}));
}

TEST(Ages, AZScoreIsFittedOnThem) {
  DataConfig config = csv_config("x", {"age"}, {});
  config.schema.numeric[0].since = "then";
  config.schema.numeric[0].unit = AgeUnit::kSecond;
  config.schema.numeric[0].transform = Transform::kZscore;
  class Rows : public RowBlockSource {
   public:
    bool next(RowBlock& block) override {
      block = block_of({{2000, 5000, 9000, kMissing}, {1000, 2000, kMissing, 0}});
      return !std::exchange(given_, true);
    }

   private:
    bool given_ = false;
  } rows;
  const FittedTransforms transforms = fit_transforms(resolve_schema(config), rows, 0, 1);
  EXPECT_DOUBLE_EQ(transforms.scales[0].mean, 2.0);
  EXPECT_DOUBLE_EQ(transforms.scales[0].stddev, 1.0);
}

TEST(DateParts, AreIdsAndAMissingTimeHasNone) {
  DataConfig config = csv_config("x", {}, {"hour", "day"});
  config.schema.features[0].column = config.schema.features[1].column = "ts";
  config.schema.features[0].part = DatePart::kHour;
  config.schema.features[1].part = DatePart::kMonthDay;
  config.schema.features[1].missing = MissingId::kOwnId;
  const Schema schema = resolve_schema(config);
  EXPECT_EQ(schema.raw_numeric, (std::vector<Schema::RawNumber>{{"ts", true}}));
  const Batch batch = batch_of(schema, block_of({{0, kMissing, kDayMs - 1}}));
  EXPECT_EQ(batch.ids, (std::vector<std::uint64_t>{0, 23, 1, kMissingId, 1}));
  EXPECT_EQ(batch.offsets, (std::vector<std::int64_t>{0, 1, 1, 2, 3, 4, 5}));
}

TEST(Crosses, HaveEveryPairOfIdsAndNoneWithoutBoth) {
  DataConfig config = csv_config("x", {}, {"a", "b", "a_b", "own"});
  config.schema.features[2].cross = {"a", "b"};
  config.schema.features[3].cross = {"a_b", "b"};
  config.schema.features[3].missing = MissingId::kOwnId;
  RowBlock::Bags a{.offsets = {0, 2, 3}, .ids = {1, 2, 3}, .weights = {}};
  RowBlock::Bags b{.offsets = {0, 2, 2}, .ids = {8, 9}, .weights = {}};
  const Batch batch = batch_of(resolve_schema(config), block_of({}, {a, b}));
  const std::vector<std::uint64_t> pairs = {hash64(1, 8), hash64(1, 9), hash64(2, 8), hash64(2, 9)};
  EXPECT_TRUE(std::ranges::equal(pairs, std::span(batch.ids).subspan(5, 4)));
  EXPECT_EQ(batch.ids[9], hash64(hash64(1, 8), 8));
  EXPECT_EQ(batch.ids[17], kMissingId);
  EXPECT_EQ(batch.offsets, (std::vector<std::int64_t>{0, 2, 3, 5, 5, 9, 9, 17, 18}));
  EXPECT_TRUE(batch.id_weights.empty());
}

TEST(Crosses, AWeightIsThatOfBothIds) {
  DataConfig config = csv_config("x", {}, {"a", "b", "a_b"});
  config.schema.features[0].weight_separator = ":";
  config.schema.features[2].cross = {"a", "b"};
  RowBlock::Bags a{.offsets = {0, 2, 3}, .ids = {1, 2, 3}, .weights = {0.5, 2, 3}};
  RowBlock::Bags b{.offsets = {0, 1, 2}, .ids = {8, 9}, .weights = {}};
  const Batch batch = batch_of(resolve_schema(config), block_of({}, {a, b}));
  EXPECT_EQ(batch.id_weights, (std::vector<float>{0.5, 2, 3, 1, 1, 0.5, 2, 3}));
  EXPECT_EQ(batch.ids[7], hash64(3, 9));
}

TEST(FittedTransformsTest, ComeBackFromJsonBitForBit) {
  DataConfig config = csv_config("x", {"a", "b"}, {"r", "s"});
  config.schema.numeric[0].transform = Transform::kZscore;
  config.schema.features[0].buckets.quantiles = 3;
  const Schema schema = resolve_schema(config);
  FittedTransforms transforms;
  transforms.scales = {{.mean = 1.0 / 3.0, .stddev = 1e-7}, {}};
  transforms.boundaries = {{-0.1, 1e300}};
  const FittedTransforms again = FittedTransforms::from_json(transforms.to_json(schema), schema);
  EXPECT_EQ(again.scales[0].mean, transforms.scales[0].mean);
  EXPECT_EQ(again.scales[0].stddev, transforms.scales[0].stddev);
  EXPECT_EQ(again.scales[1].stddev, 1.0);
  EXPECT_EQ(again.boundaries, transforms.boundaries);
}

TEST(FittedTransformsTest, ThoseOfAnotherSchemaAreRefused) {
  const Schema schema = schema_of(input_with(Transform::kZscore));
  for (const char* text : {"", "{}", "[1]", R"({"scales": {"n": {"mean": 1}}})",
                           R"({"scales": {"n": {"mean": 1, "stddev": 0}}})",
                           R"({"scales": {"m": {"mean": 1, "stddev": 1}}})"}) {
    error_of([&] { FittedTransforms::from_json(text, schema); }, ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace satrap::data
