// Negatives that are not read (data.train.negatives), and those that the files do not have.

#include <algorithm>
#include <cmath>
#include <set>

#include "satrap/core/log.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/validate.h"
#include "src/data/text/text_block.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class NegativesTest : public FilesTest {
 protected:
  static constexpr int kRows = 5000;

  NegativesTest() { set_log_level(LogLevel::kOff); }
  ~NegativesTest() override { set_log_level(LogLevel::kInfo); }

  /// Row n has the number n, and is positive if n is a multiple of 5.
  DataConfig config_of(double negatives) const {
    std::string text = "y,z,n\n";
    for (int r = 0; r < kRows; ++r) {
      text += std::to_string(r % 5 == 0 ? 1 : 0) + "," + std::to_string(r % 7 == 0 ? 1 : 0) + "," +
              std::to_string(r) + "\n";
    }
    DataConfig config = csv_config(write("log.csv", text), {"n"}, {});
    config.eval.path = config.train.path;
    config.train.negatives = negatives;
    config.batch_size = 100;
    return config;
  }

  struct Read {
    std::vector<int> rows;
    std::vector<float> weights;
  };
  static Read read(const DataConfig& config,
                   const ReadOptions& options = {},
                   Role role = Role::kTrain) {
    const Schema schema = resolve_schema(config);
    const auto source = open_batches(Dataset(config), fixed_transforms(schema), role, options);
    Read all;
    for (Batch batch; source->next(batch);) {
      for (const float number : batch.numeric) all.rows.push_back(static_cast<int>(number));
      all.weights.insert(all.weights.end(), batch.weights.begin(), batch.weights.end());
    }
    return all;
  }

  static bool is_positive(int row) { return row % 5 == 0; }
};

TEST_F(NegativesTest, AShareOfThemIsReadAndAllPositives) {
  const Read all = read(config_of(0.1));
  const auto num_positive = std::ranges::count_if(all.rows, is_positive);
  EXPECT_EQ(num_positive, kRows / 5);
  const auto num_negative = static_cast<double>(std::ssize(all.rows) - num_positive);
  EXPECT_NEAR(num_negative, 400, 4 * std::sqrt(4000 * 0.1 * 0.9));
  ASSERT_EQ(all.weights.size(), all.rows.size());
  for (std::size_t i = 0; i < all.rows.size(); ++i) {
    EXPECT_EQ(all.weights[i], is_positive(all.rows[i]) ? 1.0F : 10.0F);
  }
}

TEST_F(NegativesTest, AllAreReadWithoutTheKey) {
  const Read all = read(config_of(1.0));
  EXPECT_EQ(all.rows.size(), kRows);
  EXPECT_TRUE(all.weights.empty());
}

TEST_F(NegativesTest, EveryPassEveryThreadAndEveryRankReadsTheSame) {
  DataConfig config = config_of(0.3);
  const std::vector<int> expected = read(config).rows;
  std::vector<int> twice = expected;
  twice.insert(twice.end(), expected.begin(), expected.end());
  EXPECT_EQ(read(config, {.epochs = 2}).rows, twice);
  config.reader_threads = 3;
  EXPECT_EQ(read(config, {.seed = 9}).rows, expected);
  std::multiset<int> of_ranks;
  for (const int rank : {0, 1}) {
    for (const int row : read(config, {.rank = rank, .world_size = 2}).rows) of_ranks.insert(row);
  }
  EXPECT_TRUE(std::ranges::equal(of_ranks, expected));
  config.shuffle_rows = 500;
  std::vector<int> shuffled = read(config).rows;
  EXPECT_NE(shuffled, expected);
  std::ranges::sort(shuffled);
  EXPECT_EQ(shuffled, expected);
}

TEST_F(NegativesTest, ASmallerShareIsAPartOfALargerOne) {
  const std::vector<int> some = read(config_of(0.1)).rows, more = read(config_of(0.3)).rows;
  EXPECT_TRUE(std::ranges::includes(more, some));
}

TEST_F(NegativesTest, ThePassGoesOnInTheMiddle) {
  const DataConfig config = config_of(0.3);
  const std::vector<int> expected = read(config).rows;
  const Schema schema = resolve_schema(config);
  const auto source = open_batches(Dataset(config), fixed_transforms(schema), Role::kTrain, {});
  Batch batch;
  for (int i = 0; i < 4; ++i) source->next(batch);
  const std::vector<int> rest = read(config, {.start = source->position()}).rows;
  EXPECT_TRUE(std::ranges::equal(rest, std::span(expected).subspan(400)));
}

TEST_F(NegativesTest, EvaluationReadsAllOfThem) {
  const Read all = read(config_of(0.1), {}, Role::kEval);
  EXPECT_EQ(all.rows.size(), kRows);
  EXPECT_TRUE(all.weights.empty());
}

TEST_F(NegativesTest, OfSeveralLabelsNoneMayBePositive) {
  DataConfig config = config_of(0.001);
  config.schema.labels.resize(2);
  config.schema.labels[0].source.column = "y";
  config.schema.labels[1].source.column = "z";
  const Read all = read(config);
  const auto has_label = [](int row) { return row % 5 == 0 || row % 7 == 0; };
  EXPECT_EQ(std::ranges::count_if(all.rows, has_label), 1000 + 715 - 143);
  EXPECT_LT(std::ssize(all.rows), 1572 + 30);
}

TEST_F(NegativesTest, ThoseThatTheFilesLackCountInMetricsToo) {
  DataConfig config = config_of(0.5);
  config.train.negatives_in_files = 0.2;
  config.eval = {};
  config.eval.fraction = 0.5;
  config.eval.by = "hash";
  const Read trained = read(config);
  for (std::size_t i = 0; i < trained.rows.size(); ++i) {
    ASSERT_EQ(trained.weights[i], is_positive(trained.rows[i]) ? 1.0F : 10.0F);
  }
  const Read evaluated = read(config, {}, Role::kEval);  // the part has all that the files have
  EXPECT_GT(evaluated.rows.size(), trained.rows.size());
  for (std::size_t i = 0; i < evaluated.rows.size(); ++i) {
    ASSERT_EQ(evaluated.weights[i], is_positive(evaluated.rows[i]) ? 1.0F : 5.0F);
  }
}

TEST_F(NegativesTest, TheTailIsThatOfAllRows) {
  DataConfig config = config_of(0.1);
  config.eval = {};
  config.eval.fraction = 0.2;
  const Read evaluated = read(config, {}, Role::kEval);
  EXPECT_EQ(evaluated.rows.size(), kRows / 5);
  EXPECT_EQ(evaluated.rows.front(), kRows / 5 * 4);
  EXPECT_LT(read(config).rows.back(), evaluated.rows.front());
}

TEST_F(NegativesTest, GeneratedRowsAreAllRead) {
  for (double TrainFilesConfig::* key :
       {&TrainFilesConfig::negatives, &TrainFilesConfig::negatives_in_files}) {
    DataConfig config;
    config.format = DataFormat::kSynthetic;
    config.train.*key = 0.5;
    EXPECT_TRUE(contains(error_of([&] { validate(config, {}); }, ErrorCode::kInvalidConfig),
                         "has no effect with format synthetic"));
  }
}

TEST_F(NegativesTest, TheCacheOfParsedRowsHasThoseOfItsShare) {
  DataConfig config = config_of(0.3);
  const std::vector<int> some = read(config).rows;
  config.cache.folder = path_of("cache");
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(read(config).rows, some);
  config.train.negatives = 1.0;
  EXPECT_EQ(read(config).rows.size(), kRows);
}

TEST(RowPositions, AreThoseOfTheMessageAndItsLine) {
  TextBlock block;
  block.first_row = 100;
  EXPECT_EQ(block.position_of(3), 103U);
  block.messages = {{.first_line = 0, .offset = 7}, {.first_line = 2, .offset = 9}};
  block.partition = 1;
  std::set<std::uint64_t> positions;
  for (const int line : {0, 1, 2, 3}) positions.insert(block.position_of(line));
  EXPECT_EQ(positions.size(), 4U);
  TextBlock later;  // the rest of the second message, in another pass
  later.first_row = 5;
  later.messages = {{.first_line = -1, .offset = 9}};
  later.partition = 1;
  EXPECT_EQ(later.position_of(0), block.position_of(3));
  later.partition = 2;
  EXPECT_NE(later.position_of(0), block.position_of(3));
}

}  // namespace
}  // namespace satrap::data
