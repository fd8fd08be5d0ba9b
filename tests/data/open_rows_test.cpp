#include "satrap/data/open_rows.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <future>
#include <new>
#include <set>
#include <thread>

#include <sys/stat.h>

#include "satrap/core/grouped_auc.h"
#include "satrap/core/hash.h"
#include "satrap/core/log.h"
#include "satrap/data/file_prefix.h"
#include "src/data/passes/batch_reader.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

/// Rows whose id is the row's number.
class LoaderTest : public FilesTest {
 protected:
  LoaderTest() { set_log_level(LogLevel::kOff); }
  ~LoaderTest() override { set_log_level(LogLevel::kInfo); }

  DataConfig config_of(std::int64_t num_rows, std::int64_t batch_size) {
    std::string text = "y,n,f\n";
    for (std::int64_t r = 0; r < num_rows; ++r) {
      text += std::to_string(r % 2) + ",1," + std::to_string(r) + "\n";
    }
    DataConfig config = csv_config(write("log.csv", text), {"n"}, {"f"});
    config.eval.path = config.train.path;
    config.schema.features[0].type = IdType::kInt;
    config.batch_size = batch_size;
    config.reader_threads = 2;
    return config;
  }

  static std::unique_ptr<BatchSource> open(const DataConfig& config,
                                           const ReadOptions& options = {},
                                           Role role = Role::kTrain) {
    const Schema schema = resolve_schema(config);
    return open_batches(Dataset(config), fixed_transforms(schema), role, options);
  }

  using Batches = std::vector<std::vector<std::uint64_t>>;

  /// The ids of each batch.
  static Batches ids_of(BatchSource& source) {
    Batches batches;
    Batch batch;
    while (source.next(batch)) batches.push_back(batch.ids);
    return batches;
  }
  static Batches read(const DataConfig& config,
                      const ReadOptions& options = {},
                      Role role = Role::kTrain) {
    return ids_of(*open(config, options, role));
  }

  static Batches numbered(std::uint64_t end, std::uint64_t batch_size) {
    Batches batches;
    for (std::uint64_t row = 0; row < end; ++row) {
      if (row % batch_size == 0) batches.emplace_back();
      batches.back().push_back(row);
    }
    return batches;
  }
};

TEST_F(LoaderTest, ABatchIsLaidOutFeatureByFeature) {
  DataConfig config = csv_config(write("log.csv",
                                       "y,a,b,bag,one\n"
                                       "1,1,10,3|4,x\n"
                                       "0,2,20,,\n"
                                       "0,3,,5,x\n"),
                                 {"a", "b"}, {"bag", "one"});
  config.schema.features[0].type = IdType::kInt;
  config.schema.features[0].separator = "|";
  const auto source = open(config, {.batch_size = 2});
  Batch batch;
  ASSERT_TRUE(source->next(batch));
  const std::uint64_t x = hash_bytes("x");
  EXPECT_EQ(batch.num_examples, 2);
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 0}));
  EXPECT_EQ(batch.numeric, (std::vector<float>{1, 10, 2, 20}));
  EXPECT_EQ(batch.offsets, (std::vector<std::int64_t>{0, 2, 2, 3, 3}));
  EXPECT_EQ(batch.ids, (std::vector<std::uint64_t>{3, 4, x}));
  EXPECT_TRUE(batch.id_weights.empty());
  ASSERT_TRUE(source->next(batch));
  EXPECT_EQ(batch.num_examples, 1);
  EXPECT_EQ(batch.labels, std::vector<float>{0});
  EXPECT_EQ(batch.numeric, (std::vector<float>{3, 0}));
  EXPECT_EQ(batch.offsets, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(batch.ids, (std::vector<std::uint64_t>{5, x}));
  EXPECT_FALSE(source->next(batch));
}

TEST_F(LoaderTest, DataWithAnEndAreWaitedForByNextAlone) {
  const auto batches = open(config_of(100'000, 50'000));
  EXPECT_TRUE(batches->wait(std::chrono::milliseconds(0)))
      << "a rank whose first batch takes long has not ended";
  EXPECT_FALSE(batches->is_endless());
}

TEST_F(LoaderTest, RowsAreGroupedByAFeatureOrByAnotherColumn) {
  DataConfig config = csv_config(write("log.csv",
                                       "y,n,f,bag,user\n"
                                       "1,1,a,3|4,anna\n"
                                       "0,2,b,4|3,ben\n"
                                       "0,3,a,,anna\n"
                                       "1,4,a,3|4,\n"
                                       "1,5,,3,ben\n"),
                                 {"n"}, {"f", "bag"});
  config.schema.features[1].separator = "|";
  // The first row of the same group; -1 if the row has no group.
  const auto same_as = [&](const std::string& group_by) {
    config.group_by = group_by;
    std::vector<std::uint64_t> groups;
    const auto source = open(config, {.batch_size = 2});
    for (Batch batch; source->next(batch);) {
      EXPECT_EQ(std::ssize(batch.groups), batch.num_examples);
      EXPECT_EQ(batch.num_features, 2);
      groups.insert(groups.end(), batch.groups.begin(), batch.groups.end());
    }
    std::vector<std::ptrdiff_t> first;
    for (const std::uint64_t group : groups) {
      first.push_back(group == kNoGroup ? -1 : std::ranges::find(groups, group) - groups.begin());
    }
    return first;
  };
  EXPECT_EQ(same_as("f"), (std::vector<std::ptrdiff_t>{0, 1, 0, 0, -1}));
  EXPECT_EQ(same_as("bag"), (std::vector<std::ptrdiff_t>{0, 1, -1, 0, 4}));
  EXPECT_EQ(same_as("user"), (std::vector<std::ptrdiff_t>{0, 1, 0, -1, 1}));
  EXPECT_EQ(same_as("n"), (std::vector<std::ptrdiff_t>{0, 1, 2, 3, 4}));  // a number, as written
}

TEST_F(LoaderTest, AColumnToGroupByThatIsNotThereIsRefused) {
  DataConfig config = config_of(5, 2);
  config.group_by = "user";
  Batch batch;
  const std::string error = error_of([&] { open(config)->next(batch); }, ErrorCode::kInvalidConfig);
  EXPECT_TRUE(contains(error, "no column 'user', which data.group_by reads")) << error;
  config.group_by = "";
  open(config)->next(batch);
  EXPECT_TRUE(batch.groups.empty());
}

TEST_F(LoaderTest, OneWeightedFeatureGivesWeightsToAll) {
  DataConfig config = csv_config(write("log.csv", "y,a,b\n1,1:0.5 2,7\n0,,8\n"), {}, {"a", "b"});
  config.schema.features[0].separator = " ";
  config.schema.features[0].weight_separator = ":";
  Batch batch;
  open(config)->next(batch);
  EXPECT_EQ(batch.offsets, (std::vector<std::int64_t>{0, 2, 2, 3, 4}));
  EXPECT_EQ(batch.id_weights, (std::vector<float>{0.5, 1, 1, 1}));
}

TEST_F(LoaderTest, EveryBatchIsFullExceptTheLastOfAnEpoch) {
  for (const std::int64_t batch_size : {1, 7, 100, 250, 1000}) {
    const DataConfig config = config_of(250, batch_size);
    Batches expected = numbered(250, static_cast<std::uint64_t>(batch_size));
    EXPECT_EQ(read(config), expected) << batch_size;
    const Batches once = expected;
    expected.insert(expected.end(), once.begin(), once.end());
    EXPECT_EQ(read(config, {.epochs = 2}), expected) << batch_size;
  }
}

TEST_F(LoaderTest, PositionCountsBatchesAndEpochs) {
  const auto source = open(config_of(25, 10), {.epochs = 2});
  Batch batch;
  EXPECT_EQ(source->position(), (DataPosition{0, 0, 0}));
  source->next(batch);
  EXPECT_EQ(source->position(), (DataPosition{0, 1, 10, 10}));
  source->next(batch);
  source->next(batch);
  EXPECT_EQ(source->position(), (DataPosition{0, 3, 25, 25}));
  source->next(batch);
  EXPECT_EQ(source->position(), (DataPosition{1, 1, 10, 10}));
}

TEST_F(LoaderTest, TheLastBatchOfAnEpochIsKnown) {
  for (const auto& [rows, expected] :
       {std::pair{20, std::vector{false, true, false, true}},
        std::pair{21, std::vector{false, false, true, false, false, true}},
        std::pair{3, std::vector{true, true}}}) {
    for (const std::int64_t shuffle_rows : {0, 50}) {
      DataConfig config = config_of(rows, 10);
      config.shuffle_rows = shuffle_rows;
      const auto source = open(config, {.epochs = 2});
      std::vector<bool> ended;
      Batch batch;
      while (source->next(batch)) ended.push_back(source->has_ended_epoch());
      EXPECT_EQ(ended, expected) << rows << " rows, shuffled in a buffer of " << shuffle_rows;
    }
  }
}

TEST_F(LoaderTest, APositionInShuffledRowsKnowsHowFarTheyWereRead) {
  DataConfig config = config_of(25, 10);
  config.shuffle_rows = 5;
  const auto source = open(config);
  Batch batch;
  source->next(batch);
  EXPECT_EQ(source->position().next_row, 0);
  EXPECT_EQ(source->position().rows_read, 25);  // all left the buffer in one block
}

TEST_F(LoaderTest, FilesKnowTheirRowsOnceTheyHaveBeenRead) {
  DataConfig config = config_of(3, 10);
  config.train.path = {write("a.csv", "y,n,f\n1,1,1\nbad\n\n0,1,2\n"),
                       write("b.csv", "y,n,f\n1,1,3\n")};
  config.max_bad_rows = "0";
  for (const std::int64_t epochs : {1, 2}) {
    const auto source = open(config, {.epochs = epochs});
    EXPECT_FALSE(source->files().at(1).num_rows > 1);
    ids_of(*source);
    const std::vector<DataFile> files = source->files();
    ASSERT_EQ(files.size(), 2U);
    EXPECT_EQ(files[0].path, config.train.path[0]);
    EXPECT_EQ(files[0].checksum, examine_prefix(files[0].path, files[0].bytes).checksum);
    EXPECT_EQ(files[0].first_row, 0);
    EXPECT_EQ(files[0].num_rows, 4);
    EXPECT_EQ(files[1].first_row, 4);
    EXPECT_EQ(files[1].num_rows, 1);
  }
}

TEST_F(LoaderTest, OpeningAtAPositionContinuesExactly) {
  DataConfig config = config_of(0, 10);
  std::string text = "y,n,f\n";  // with bad and blank rows in between
  for (int r = 0; r < 205; ++r) {
    text += r % 17 == 5 ? "1,bad,7\n" : r % 23 == 2 ? "\n" : "0,1," + std::to_string(r) + "\n";
  }
  config.train.path = {write("bad.csv", text)};
  for (const std::int64_t shuffle_rows : {0, 50}) {
    config.shuffle_rows = shuffle_rows;
    const Batches all = read(config, {.epochs = 3});
    const auto source = open(config, {.epochs = 3});
    Batch batch;
    for (std::size_t done = 1; source->next(batch); ++done) {
      const Batches rest(all.begin() + static_cast<std::ptrdiff_t>(done), all.end());
      ReadOptions options{.epochs = 3, .start = source->position()};
      EXPECT_EQ(read(config, options), rest) << done;
      options.start.next_row = 0;  // as from a checkpoint that lacks it
      EXPECT_EQ(read(config, options), rest) << done;
    }
  }
}

TEST_F(LoaderTest, ShufflingDependsOnSeedAndEpoch) {
  DataConfig config = config_of(100, 100);
  config.shuffle_rows = 100;
  const Batches both = read(config, {.epochs = 2});
  EXPECT_NE(both[0], both[1]);
  EXPECT_EQ(read(config, {.epochs = 2}), both);
  EXPECT_NE(read(config, {.seed = 2}), Batches{both[0]});
  std::vector<std::uint64_t> sorted = both[1];
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(Batches{sorted}, numbered(100, 100));
}

TEST_F(LoaderTest, EvaluationIsNeverShuffled) {
  DataConfig config = config_of(100, 30);
  config.shuffle_rows = 100;
  EXPECT_EQ(read(config, {}, Role::kEval), numbered(100, 30));
}

TEST_F(LoaderTest, RanksShareTheGlobalBatch) {
  const DataConfig config = config_of(50, 12);
  std::set<std::uint64_t> seen;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const Batches batches = read(config, {.rank = rank, .world_size = 3});
    // Global batch b holds rows 12 b .. 12 b + 11, four of them for each rank, in order.
    for (std::size_t b = 0; b < batches.size(); ++b) {
      for (std::size_t i = 0; i < batches[b].size(); ++i) {
        EXPECT_EQ(batches[b][i], 12 * b + 4 * static_cast<std::size_t>(rank) + i);
        EXPECT_TRUE(seen.insert(batches[b][i]).second);
      }
    }
  }
  EXPECT_EQ(seen.size(), 50U);
}

TEST_F(LoaderTest, ALimitOfRowsHoldsForEachEpoch) {
  DataConfig config = config_of(100, 10);
  config.train.max_rows = 25;
  EXPECT_EQ(read(config), numbered(25, 10));
  EXPECT_EQ(read(config, {.epochs = 2}).size(), 6U);
}

TEST_F(LoaderTest, StatsCountRowsBytesAndBadRows) {
  DataConfig config = csv_config(write("log.csv", "y,f\n1,a\nx,a\n0,b\n"), {}, {"f"});
  config.max_bad_rows = "0";
  const auto source = open(config, {.epochs = 2});
  ids_of(*source);
  const ReadStats stats = source->stats();
  EXPECT_EQ(stats.rows, 4);
  EXPECT_EQ(stats.bad_rows, 2);
  EXPECT_EQ(stats.bytes, 32);
  EXPECT_EQ(stats.total_bytes, 16);
  EXPECT_EQ(stats.epoch_rows, 2.0);
}

TEST_F(LoaderTest, TheBytesOfAnEpochAreKnownBeforeItsFirstRow) {
  std::promise<void> may_open;
  const auto open_when_told = [&](const Dataset&,
                                  const RowPass&) -> std::unique_ptr<RowDeliveries> {
    may_open.get_future().wait();
    throw Error(ErrorCode::kIo, "opened");
  };
  const auto source = open(config_of(10, 2), {.open_deliveries = open_when_told});
  EXPECT_EQ(source->stats().total_bytes, 66);
  may_open.set_value();
  Batch batch;
  EXPECT_EQ(error_of([&] { source->next(batch); }, ErrorCode::kIo), "opened");
}

TEST_F(LoaderTest, DataWithoutAUsableRowAreAnErrorThatSaysWhy) {
  DataConfig config = csv_config(write("log.csv", "y,f\n7,a\n8,a\n"), {}, {"f"});
  EXPECT_TRUE(contains(error_of([&] { read(config); }), "2 of 2 rows (100.0 %) cannot be read"));
  config.max_bad_rows = "0";
  const std::string message = error_of([&] { read(config); });
  EXPECT_TRUE(contains(message, "2 bad rows; the first: " + path_of("log.csv") + ":2: column 'y'"))
      << message;
  config = csv_config(write("log.csv", "y,f\n"), {}, {"f"});
  EXPECT_TRUE(contains(error_of([&] { read(config); }), "no row of the training data"));
}

TEST_F(LoaderTest, UsableFilesAreThoseThatPatternsName) {
  FilesConfig files;
  files.path = {path_of("b*"), path_of("missing"), write("a", "1"), path_of("none*"), path_of("")};
  const std::string b10 = write("b10", "1"), b2 = write("b2", "1");
  write("c", "");
  EXPECT_EQ(usable_files(files), std::vector<std::string>({b2, b10, path_of("a")}));
}

TEST_F(LoaderTest, AMissingFileIsAnErrorAtOnce) {
  const DataConfig config = csv_config(path_of("none.csv"), {}, {"f"});
  error_of([&] { open(config); }, ErrorCode::kIo);
}

TEST_F(LoaderTest, AnErrorComesAfterTheBatchesBeforeIt) {
  DataConfig config = csv_config(write("log.csv", "y,f\n1,a\n1,b\n"), {}, {"f"});
  config.train.path.push_back(write("log2.csv", "y,g\n1,a\n"));
  const auto source = open(config, {.batch_size = 1});
  Batch batch;
  EXPECT_TRUE(source->next(batch));
  EXPECT_TRUE(source->next(batch));
  EXPECT_TRUE(contains(error_of([&] { source->next(batch); }, ErrorCode::kInvalidConfig),
                       "there is no column 'f'"));
}

TEST_F(LoaderTest, WantOfMemorySaysForWhat) {
  class NoMemory : public RowBlockSource {
   public:
    bool next(RowBlock&) override { throw std::bad_alloc(); }
  };
  const Schema schema = resolve_schema(config_of(1, 1));
  BatchReader loader(
      schema, fixed_transforms(schema),
      [](std::int64_t, std::int64_t) { return std::make_unique<NoMemory>(); },
      [] { return std::vector<DataFile>(); }, [] { return "no rows"; }, {});
  Batch batch;
  EXPECT_TRUE(contains(error_of([&] { loader.next(batch); }, ErrorCode::kUnavailable),
                       "out of memory for the rows and batches that are read ahead"));
}

TEST_F(LoaderTest, StandardInputGoesRoundOnce) {
  DataConfig config = csv_config("-", {}, {"f"});
  EXPECT_TRUE(contains(error_of([&] { open(config, {.epochs = 2}); }, ErrorCode::kInvalidConfig),
                       "can be read only once"));
  EXPECT_TRUE(
      contains(error_of([&] { open(config, {.start = {0, 3, 30}}); }, ErrorCode::kInvalidConfig),
               "resuming in the middle"));
  config.schema.numeric.emplace_back().name = "n";
  config.schema.numeric[0].transform = Transform::kZscore;
  EXPECT_TRUE(
      contains(error_of([&] { fit_transforms(Dataset(config), 1); }, ErrorCode::kInvalidConfig),
               "fitted before training"));
}

TEST_F(LoaderTest, CloseEndsTheStream) {
  const auto source = open(config_of(1000, 1));
  Batch batch;
  EXPECT_TRUE(source->next(batch));
  source->close();
  EXPECT_FALSE(source->next(batch));
}

TEST_F(LoaderTest, AStopEndsAPipeAfterAWholeBatch) {
  DataConfig config = config_of(100'000, 30);
  std::ifstream rows(config.train.path.front());
  for (const std::int64_t shuffle_rows : {0, 1'000'000}) {
    config.train.path = {path_of("pipe" + std::to_string(shuffle_rows))};
    config.shuffle_rows = shuffle_rows;
    ASSERT_EQ(mkfifo(config.train.path.front().c_str(), 0600), 0);
    // Opened for reading and writing: it never ends.
    std::fstream pipe(config.train.path.front(), std::ios::in | std::ios::out);
    std::atomic<bool> stop{false};
    const auto source = open(config, {.stop = &stop});
    std::thread writer([&] {
      rows.clear();
      rows.seekg(0);
      pipe << rows.rdbuf() << std::flush;
      stop = true;
    });
    for (const std::vector<std::uint64_t>& batch : ids_of(*source)) ASSERT_EQ(batch.size(), 30U);
    writer.join();
  }
}

TEST_F(LoaderTest, TransformsAreFittedOnTheTrainingData) {
  DataConfig config = csv_config(write("train.csv", "y,n\n1,1\n0,3\n1,5\n"), {"n"}, {});
  config.eval.path = {write("eval.csv", "y,n\n1,100\n")};
  config.schema.numeric[0].transform = Transform::kZscore;
  EXPECT_EQ(fit_transforms(Dataset(config), 1).scales[0].mean, 3.0);
  config.fit_rows = 2;
  const FittedTransforms transforms = fit_transforms(Dataset(config), 1);
  EXPECT_EQ(transforms.scales[0].mean, 2.0);
  Batch batch;
  ASSERT_TRUE(open_batches(Dataset(config), transforms, Role::kEval, {})->next(batch));
  EXPECT_EQ(batch.numeric, std::vector<float>{98});
}

TEST_F(LoaderTest, PredictionKeepsEveryLineAndReadsNoLabel) {
  const std::string text = "n,f\n1,10\nx,11\n\n4,13\n";
  DataConfig config = csv_config(write("unlabelled.csv", text), {"n"}, {"f"});
  config.eval.path = config.train.path;
  config.schema.features[0].type = IdType::kInt;
  config.batch_size = 3;
  const auto source = open(config, {}, Role::kPredict);
  Batch batch;
  ASSERT_TRUE(source->next(batch));
  ASSERT_EQ(batch.num_examples, 3);
  EXPECT_EQ(batch.labels[0], 0.0F);
  EXPECT_TRUE(std::isnan(batch.labels[1]));
  EXPECT_TRUE(std::isnan(batch.labels[2]));
  EXPECT_EQ(batch.offsets, (std::vector<std::int64_t>{0, 1, 1, 1}));
  EXPECT_EQ(batch.numeric, (std::vector<float>{1, 0, 0}));
  ASSERT_TRUE(source->next(batch));
  ASSERT_EQ(batch.num_examples, 1);
  EXPECT_EQ(batch.labels[0], 0.0F);
  EXPECT_EQ(batch.ids, std::vector<std::uint64_t>{13});
  EXPECT_FALSE(source->next(batch));
  EXPECT_EQ(source->stats().bad_rows, 1);
}

}  // namespace
}  // namespace satrap::data
