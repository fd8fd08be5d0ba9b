#include "satrap/loader/loaders.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/loader/loaders_fixture.h"

namespace satrap::loader {
namespace {

TEST_F(LoadersTest, AnyNumberOfThemGivesTheRowsOfLocalReading) {
  const Run expected = read({.epochs = 2});
  ASSERT_GT(expected.batches.size(), 100U);
  ASSERT_GT(expected.bad_row_reasons.size(), 0U);
  for (int count = 1; count <= 5; ++count) {
    start_loaders(1);
    EXPECT_EQ(read(by_loaders({.epochs = 2})), expected) << count << " loaders";
  }
}

TEST_F(LoadersTest, ShuffledRowsAndAPartForEvaluationAreThoseOfLocalReading) {
  start_loaders(3);
  config_.shuffle_rows = 50;
  for (const char* by : {"hash", "tail", "c"}) {
    config_.eval.fraction = 0.3;
    config_.eval.by = by;
    Run expected = read({.seed = 5}), run = read(by_loaders({.seed = 5}));
    // Where the last row is, is known before the last file has been read to its end.
    expected.files.back().num_rows = run.files.back().num_rows = -1;
    EXPECT_EQ(run, expected) << by;
  }
}

TEST_F(LoadersTest, RanksGetTheirRows) {
  start_loaders(2);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const data::ReadOptions options{.rank = rank, .world_size = 3, .batch_size = 5};
    const Run expected = read(options);
    EXPECT_EQ(read(by_loaders(options)), expected) << "rank " << rank;
  }
}

TEST_F(LoadersTest, ReadingContinuesAtEveryPosition) {
  start_loaders(2);
  const Run expected = read({});
  for (std::size_t begin = 0; begin < expected.positions.size(); begin += 50) {
    const Run rest = read(by_loaders({.start = expected.positions[begin]}));
    EXPECT_EQ(rest.batches, std::vector(expected.batches.begin() + static_cast<int>(begin) + 1,
                                        expected.batches.end()))
        << "after batch " << begin;
  }
}

TEST_F(LoadersTest, RowsOfALostLoaderAreReadByOthers) {
  const Run expected = read({.epochs = 2, .prefetch_batches = 1});
  for (const std::size_t when : {1U, 20U, 77U}) {
    loaders_.clear();
    start_loaders(3);
    const Run run =
        read(by_loaders({.epochs = 2, .prefetch_batches = 1}), [&](std::size_t batches) {
          if (batches == when) loaders_[when % 3].reset();
        });
    EXPECT_EQ(run, expected) << "after batch " << when;
  }
}

TEST_F(LoadersTest, TheLastLoaderIsWaitedFor) {
  const Run expected = read({.epochs = 2, .prefetch_batches = 1});
  start_loaders(1);
  const Run run = read(by_loaders({.epochs = 2, .prefetch_batches = 1}), [&](std::size_t batches) {
    if (batches != 30) return;
    loaders_.clear();
    start_loaders(1);
  });
  EXPECT_EQ(run, expected);
}

TEST_F(LoadersTest, NoLoaderWithinTheTimeoutIsAnError) {
  const std::string dead = leave_dead_entry();
  try {
    read([&] {
      data::ReadOptions options;
      options.open_deliveries = rank_side(/*timeout_ms=*/50).opener();
      return options;
    }());
    FAIL() << "read without a loader";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find("no loader could be used"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("satrap loader"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(concat("loader 0 at ", dead)), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("refused"), std::string::npos) << error.what();
  }
}

TEST_F(LoadersTest, AnErrorOfTheLoadersReaderIsTheRanks) {
  start_loaders(2);
  config_.on_bad_row = data::OnBadRow::kStop;
  EXPECT_THROW(read(by_loaders()), Error);
  config_.on_bad_row = data::OnBadRow::kSkip;
  std::ofstream(config_.train.path[1]) << "other,columns\n1,2\n";
  const auto source = open(by_loaders());
  data::Batch batch;
  try {
    while (source->next(batch)) {
    }
    FAIL() << "read a file without the columns";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("loader/"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("b.csv"), std::string::npos) << error.what();
  }
}

TEST_F(LoadersTest, ClosingEndsAWaitForALoader) {
  const auto source = open(by_loaders());
  source->close();
  data::Batch batch;
  EXPECT_FALSE(source->next(batch));
}

TEST_F(LoadersTest, ALoaderWithAnotherTokenIsNotUsed) {
  net::Endpoint strange(with_token("another"));
  const LoaderServer stranger(strange, store_, {});
  start_loaders(1);
  const Run expected = read({});
  EXPECT_EQ(read(by_loaders()), expected);
}

TEST_F(LoadersTest, APassOfAFileThatIsNotThereIsItsError) {
  start_loaders(1);
  std::filesystem::copy(config_.train.path[0], folder_.path() + "/c.csv");
  config_.train.path = {folder_.path() + "/c.csv"};
  data::ReadOptions options = by_loaders({.prefetch_batches = 1});
  const auto opened = options.open_deliveries;
  options.open_deliveries = [&](const data::Dataset& data, const data::RowPass& pass) {
    std::filesystem::remove(data.config().train.path[0]);
    return opened(data, pass);
  };
  EXPECT_THROW(read(options), Error);
}

}  // namespace
}  // namespace satrap::loader
