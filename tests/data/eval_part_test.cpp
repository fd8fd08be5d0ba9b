// data.eval.fraction through the loader: what is trained on and what is evaluated.
#include <algorithm>
#include <iterator>
#include <set>

#include "satrap/core/hash.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/validate.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using Ids = std::vector<std::uint64_t>;

constexpr std::int64_t kNumRows = 1000;

/// Rows whose id is the row's number; 50 users, user 0 without a name.
class EvalPart : public FilesTest {
 protected:
  DataConfig config_of(const std::string& by, double fraction = 0.2) {
    std::string text = "y,user,f\n";
    for (std::int64_t r = 0; r < kNumRows; ++r) {
      text += std::to_string(r % 2) + "," + user_of(r) + "," + std::to_string(r) + "\r\n";
    }
    DataConfig config = csv_config(write("log.csv", text), {}, {"f"});
    config.schema.features[0].type = IdType::kInt;
    config.eval.by = by;
    config.eval.fraction = fraction;
    config.batch_size = 30;
    config.reader_threads = 2;
    return config;
  }

  static std::string user_of(std::int64_t row) {
    return row % 50 == 0 ? "" : "\"user " + std::to_string(row % 50) + "\"";
  }

  static Ids read(const DataConfig& config, Role role, const ReadOptions& options = {}) {
    const Schema schema = resolve_schema(config);
    const auto source = open_batches(Dataset(config), fixed_transforms(schema), role, options);
    Ids ids;
    Batch batch;
    while (source->next(batch)) ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
    return ids;
  }

  static Ids sorted(Ids ids) {
    std::ranges::sort(ids);
    return ids;
  }

  static Ids all() {
    Ids ids(kNumRows);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
    return ids;
  }

  /// Every row is in exactly one of them.
  static void expect_divided(const Ids& trained, const Ids& evaluated) {
    Ids both = trained;
    both.insert(both.end(), evaluated.begin(), evaluated.end());
    EXPECT_EQ(sorted(both), all());
  }
};

TEST_F(EvalPart, TheTailIsTheLastRows) {
  const DataConfig config = config_of("tail", 0.25);
  const Ids evaluated = read(config, Role::kEval);
  EXPECT_EQ(evaluated.size(), 250U);
  EXPECT_EQ(evaluated.front(), 750U);
  expect_divided(read(config, Role::kTrain), evaluated);
}

TEST_F(EvalPart, AHashDividesByTheNumberOfTheRow) {
  const DataConfig config = config_of("hash");
  const Ids evaluated = read(config, Role::kEval);
  expect_divided(read(config, Role::kTrain), evaluated);
  Ids expected;
  for (std::int64_t r = 0; r < kNumRows; ++r) {
    if (static_cast<double>(hash_bytes(std::to_string(r))) < 0.2 * 0x1p64) {
      expected.push_back(static_cast<std::uint64_t>(r));
    }
  }
  EXPECT_EQ(evaluated, expected);
}

TEST_F(EvalPart, AColumnKeepsItsRowsTogetherButNotThoseWithoutAValue) {
  const DataConfig config = config_of("user");
  const Ids evaluated = read(config, Role::kEval);
  expect_divided(read(config, Role::kTrain), evaluated);
  std::set<std::uint64_t> users, evaluated_nameless;
  for (const std::uint64_t row : evaluated) {
    (row % 50 == 0 ? evaluated_nameless : users).insert(row % 50 == 0 ? row : row % 50);
  }
  EXPECT_GT(users.size(), 0U);
  EXPECT_LT(users.size(), 49U);
  EXPECT_EQ(evaluated.size(), users.size() * 20 + evaluated_nameless.size());
  EXPECT_GT(evaluated_nameless.size(), 0U);
  EXPECT_LT(evaluated_nameless.size(), 20U);
}

TEST_F(EvalPart, ShuffledRowsAreThoseOfTheTrainingPart) {
  for (const char* by : {"tail", "hash", "user"}) {
    DataConfig config = config_of(by);
    const Ids ordered = read(config, Role::kTrain);
    config.shuffle_rows = 100;
    const Ids shuffled = read(config, Role::kTrain);
    EXPECT_NE(shuffled, ordered) << by;
    EXPECT_EQ(sorted(shuffled), ordered) << by;
  }
}

TEST_F(EvalPart, RanksDivideThePartsAmongThemselves) {
  for (const char* by : {"tail", "hash", "user"}) {
    const DataConfig config = config_of(by);
    for (const Role role : {Role::kTrain, Role::kEval}) {
      Ids together;
      for (std::int64_t rank = 0; rank < 3; ++rank) {
        const Ids mine = read(config, role, {.rank = rank, .world_size = 3});
        together.insert(together.end(), mine.begin(), mine.end());
      }
      EXPECT_EQ(sorted(together), read(config, role)) << by;
    }
  }
}

TEST_F(EvalPart, AResumedSourceContinuesWithTheSameRows) {
  for (const char* by : {"tail", "hash", "user"}) {
    for (const std::int64_t shuffle_rows : {0, 64}) {
      DataConfig config = config_of(by);
      config.shuffle_rows = shuffle_rows;
      const Ids whole = read(config, Role::kTrain, {.epochs = 2});
      const Schema schema = resolve_schema(config);
      const auto source =
          open_batches(Dataset(config), fixed_transforms(schema), Role::kTrain, {.epochs = 2});
      Batch batch;
      Ids ids;
      for (int i = 0; i < 9; ++i) {
        ASSERT_TRUE(source->next(batch));
        ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
      }
      const Ids rest = read(config, Role::kTrain, {.epochs = 2, .start = source->position()});
      ids.insert(ids.end(), rest.begin(), rest.end());
      EXPECT_EQ(ids, whole) << by << " " << shuffle_rows;
    }
  }
}

TEST_F(EvalPart, PredictionHasALineForEachOfTheEvaluationPart) {
  for (const char* by : {"tail", "hash", "user"}) {
    const DataConfig config = config_of(by);
    EXPECT_EQ(read(config, Role::kPredict), read(config, Role::kEval)) << by;
  }
}

TEST_F(EvalPart, FirstRowsAreCountedBeforeTheyAreDivided) {
  DataConfig config = config_of("tail", 0.5);
  config.train.max_rows = 10;
  EXPECT_EQ(read(config, Role::kTrain), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(read(config, Role::kEval), (Ids{5, 6, 7, 8, 9}));
}

TEST_F(EvalPart, RowsThatAreAppendedMoveNoOther) {
  DataConfig config = config_of("hash");
  const Ids before = read(config, Role::kEval);
  config.train.path.push_back(write("more.csv", "y,user,f\n1,new,1000\n0,new,1001\n"));
  Ids after = read(config, Role::kEval);
  std::erase_if(after, [](std::uint64_t row) { return row >= kNumRows; });
  EXPECT_EQ(after, before);
}

TEST_F(EvalPart, AColumnThatIsNotThereIsNamed) {
  EXPECT_TRUE(
      contains(error_of([&] { read(config_of("usr"), Role::kTrain); }, ErrorCode::kInvalidConfig),
               "log.csv:1: there is no column 'usr', which data.eval.by reads; did you "
               "mean 'user'?"));
}

TEST_F(EvalPart, OneRowCannotBeDivided) {
  DataConfig config = config_of("tail");
  config.train.max_rows = 1;
  EXPECT_TRUE(contains(error_of([&] { read(config, Role::kTrain); }),
                       "data.eval.fraction = 0.2 leaves no row"));
}

TEST_F(EvalPart, ItIsInsteadOfFiles) {
  const auto refused = [&](const auto& change) {
    DataConfig config = config_of("hash");
    change(config);
    return error_of([&] { validate(config); }, ErrorCode::kInvalidConfig);
  };
  EXPECT_TRUE(contains(refused([](DataConfig& c) { c.eval.path = {"x.csv"}; }), "data.eval: "));
  EXPECT_TRUE(contains(refused([](DataConfig& c) { c.eval.max_rows = 5; }), "data.eval.max_rows"));
  EXPECT_TRUE(contains(refused([](DataConfig& c) { c.eval.fraction = 0; }), "data.eval.by"));
  EXPECT_TRUE(contains(refused([](DataConfig& c) { c.eval.by = ""; }), "data.eval.by"));
  EXPECT_TRUE(contains(refused([](DataConfig& c) { c.train.path = {"-"}; }), "read again"));
}

}  // namespace
}  // namespace satrap::data
