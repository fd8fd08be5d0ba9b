#include "src/data/cache/parsed_row_cache.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "satrap/core/file.h"
#include "satrap/core/hash.h"
#include "satrap/core/log.h"
#include "satrap/data/file_prefix.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/validate.h"
#include "src/data/cache/parsed_row_file.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

/// All that a stream of batches gives.
struct Stream {
  std::vector<std::uint64_t> values;    // of all batches, as bits
  std::vector<DataPosition> positions;  // after each batch
  std::vector<std::size_t> ends;        // of each batch in `values`
  std::int64_t bad_rows = 0;
  std::map<std::string, std::int64_t> reasons;
  std::vector<DataFile> files;
  std::string error;
};

class RowCacheTest : public FilesTest {
 protected:
  static constexpr std::int64_t kRows = 12'000;

  RowCacheTest() { set_log_level(LogLevel::kOff); }
  ~RowCacheTest() override { set_log_level(LogLevel::kInfo); }

  /// Rows of every kind of column in two files, with bad and blank ones.
  DataConfig make_files() const {
    const RandomStream random{5};
    std::string text[2] = {"y,n,b,i,h,s,bag,w\n", "y,n,b,i,h,s,bag,w\n"};
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t bound) { return random.below(draw++, bound); };
    for (std::int64_t r = 0; r < kRows; ++r) {
      std::string& out = text[r < 5000 ? 0 : 1];
      if (below(50) == 0) {
        out += "\n";
        continue;
      }
      out += std::to_string(below(2)) + ",";
      out += below(40) == 0 ? "bad," : below(4) == 0 ? "," : std::to_string(below(100'000)) + ",";
      out += std::to_string(below(100)) + ".5,";
      out += below(5) == 0 ? "," : std::to_string(below(UINT64_MAX)) + ",";
      out += "68fd1e" + std::to_string(below(90) + 10) + ",";
      out += below(5) == 0 ? "," : "text " + std::to_string(below(700)) + ",";
      for (std::uint64_t k = below(5); k > 0; --k) out += std::to_string(below(300)) + "|";
      out += "7," + std::to_string(below(20)) + ":0.25|3:2\n";
    }
    DataConfig config =
        csv_config(write("day_1.csv", text[0]), {"n"}, {"b", "i", "h", "s", "bag", "w"});
    config.train.path.push_back(write("day_2.csv", text[1]));
    std::vector<FeatureConfig>& features = config.schema.features;
    features[0].buckets.boundaries = {10, 50};
    features[1].type = IdType::kInt;
    features[1].missing = MissingId::kOwnId;
    features[2].type = IdType::kHex;
    features[4].separator = features[5].separator = "|";
    features[4].max_length = 3;
    features[5].weight_separator = ":";
    config.group_by = "s";
    config.max_bad_rows = "0";
    config.reader_threads = 1;
    return config;
  }

  DataConfig cached(DataConfig config) const {
    config.cache.folder = path_of("cache");
    return config;
  }

  /// As of a job of its own.
  static Stream read(const DataConfig& config,
                     const ReadOptions& options = {},
                     Role role = Role::kTrain) {
    return read(Dataset(config), options, role);
  }
  static Stream read(const Dataset& data, ReadOptions options = {}, Role role = Role::kTrain) {
    if (options.batch_size == 0) options.batch_size = 64;
    Stream all;
    const auto source = open_batches(data, fixed_transforms(data.schema()), role, options);
    const auto add_floats = [&](const std::vector<float>& values) {
      for (const float x : values) all.values.push_back(std::bit_cast<std::uint32_t>(x));
    };
    try {
      for (Batch batch; source->next(batch);) {
        add_floats(batch.labels);
        add_floats(batch.numeric);
        add_floats(batch.id_weights);
        all.values.insert(all.values.end(), batch.ids.begin(), batch.ids.end());
        all.values.insert(all.values.end(), batch.offsets.begin(), batch.offsets.end());
        all.values.insert(all.values.end(), batch.groups.begin(), batch.groups.end());
        all.positions.push_back(source->position());
        all.ends.push_back(all.values.size());
      }
    } catch (const Error& error) {
      all.error = error.what();
    }
    all.bad_rows = source->stats().bad_rows;
    all.reasons = source->bad_row_reasons();
    all.files = source->files();
    return all;
  }

  static void expect_same(const Stream& found, const Stream& expected) {
    EXPECT_EQ(found.values, expected.values);
    EXPECT_EQ(found.positions, expected.positions);
    EXPECT_EQ(found.bad_rows, expected.bad_rows);
    EXPECT_EQ(found.reasons, expected.reasons);
    EXPECT_EQ(found.files, expected.files);
    EXPECT_EQ(found.error, expected.error);
  }

  std::vector<std::string> caches() const {
    const std::string folder = path_of("cache");
    if (!std::filesystem::exists(folder)) return {};
    std::vector<std::string> names = list_directory(folder);
    std::erase(names, ".lock");
    return names;
  }
  std::string cache() const { return path_of("cache") + "/" + caches().front(); }

  /// Changes the rows of the files, but neither their sizes nor their times: who reads the same
  /// rows as before, has them from the cache.
  static void change_secretly(const DataConfig& config) {
    for (const std::string& path : config.train.path) {
      const auto time = std::filesystem::last_write_time(path);
      std::string text = read_file(path);
      for (std::size_t i = kChecksumBytes; i + kChecksumBytes < text.size(); ++i) {
        if (text[i] == '5') text[i] = '6';
      }
      std::ofstream(path, std::ios::binary) << text;
      std::filesystem::last_write_time(path, time);
    }
  }
};

TEST_F(RowCacheTest, SecondEpochsAndRunsReadTheSameRowsAndNotTheFiles) {
  for (const std::int64_t shuffle : {0, 500}) {
    DataConfig config = make_files();
    std::filesystem::remove_all(path_of("cache"));
    config.shuffle_rows = shuffle;
    const Stream expected = read(config, {.epochs = 2});
    EXPECT_GT(expected.bad_rows, 50);
    for (const std::int64_t threads : {1, 3}) {
      config.reader_threads = threads;
      expect_same(read(cached(config), {.epochs = 2}), expected);
    }
    ASSERT_EQ(caches().size(), 1U);
    change_secretly(config);
    EXPECT_NE(read(config, {.epochs = 2}).values, expected.values);
    EXPECT_EQ(read(cached(config), {.epochs = 2}).values, expected.values);
  }
}

TEST_F(RowCacheTest, AResumedRunGoesOnWithTheSameRows) {
  for (const std::int64_t shuffle : {0, 500}) {
    DataConfig config = make_files();
    config.shuffle_rows = shuffle;
    const Stream whole = read(cached(config), {.epochs = 2});
    for (std::size_t at = 0; at < whole.positions.size(); at += 37) {
      SCOPED_TRACE(at);
      const ReadOptions options{.epochs = 2, .start = whole.positions[at]};
      const Stream rest = read(cached(config), options);
      expect_same(rest, read(config, options));
      EXPECT_EQ(rest.values,
                std::vector(whole.values.begin() + static_cast<std::ptrdiff_t>(whole.ends[at]),
                            whole.values.end()));
    }
  }
}

TEST_F(RowCacheTest, ARunThatBeginsInTheMiddleCachesTheNextEpoch) {
  const DataConfig config = make_files();
  const Stream whole = read(config, {.epochs = 2});
  const ReadOptions options{.epochs = 2, .start = whole.positions[5]};
  expect_same(read(cached(config), options), read(config, options));
  EXPECT_EQ(caches().size(), 1U);
  expect_same(read(cached(config), {.epochs = 2}), whole);
}

TEST_F(RowCacheTest, EveryRankCachesItsRows) {
  const DataConfig config = make_files();
  for (int run = 0; run < 2; ++run) {
    for (const std::int64_t rank : {0, 1}) {
      const ReadOptions options{.rank = rank, .world_size = 2};
      expect_same(read(cached(config), options), read(config, options));
    }
    EXPECT_EQ(caches().size(), 2U);
  }
}

TEST_F(RowCacheTest, TrainingAndEvaluationRowsOfTheSameFiles) {
  for (const char* const by : {"tail", "hash", "s"}) {
    DataConfig config = make_files();
    config.eval.fraction = 0.3;
    config.eval.by = by;
    for (int run = 0; run < 2; ++run) {
      for (const Role role : {Role::kTrain, Role::kEval}) {
        expect_same(read(cached(config), {}, role), read(config, {}, role));
      }
    }
  }
  EXPECT_EQ(caches().size(), 6U);
}

TEST_F(RowCacheTest, OnlyTheFirstRows) {
  DataConfig config = make_files();
  read(cached(config));
  for (const std::int64_t rows : {1, 5000, 5001}) {
    config.train.max_rows = rows;
    for (int run = 0; run < 2; ++run) expect_same(read(cached(config)), read(config));
  }
  EXPECT_EQ(caches().size(), 4U);
}

TEST_F(RowCacheTest, AChangedFileIsParsedAgainAndReplacesTheCache) {
  const DataConfig config = make_files();
  read(cached(config));
  std::ofstream(config.train.path[1], std::ios::app) << "1,5,1.5,3,aa,text,1,2:1\n";
  const Stream expected = read(config);
  expect_same(read(cached(config)), expected);
  EXPECT_EQ(caches().size(), 1U);
  expect_same(read(cached(config)), expected);
}

TEST_F(RowCacheTest, AFileOfTheSameSizeAndTimeIsToldByItsBeginningOrEnd) {
  const DataConfig config = csv_config(write("log.csv", "y,n,f\n1,2,a\n"), {"n"}, {"f"});
  read(cached(config));
  const std::filesystem::path path = config.train.path.front();
  const auto time = std::filesystem::last_write_time(path);
  write("log.csv", "y,n,f\n0,2,a\n");
  std::filesystem::last_write_time(path, time);
  expect_same(read(cached(config)), read(config));
}

TEST_F(RowCacheTest, AnotherSchemaHasAnotherCacheAnotherTransformNot) {
  DataConfig config = make_files();
  read(cached(config));
  config.schema.numeric[0].transform = Transform::kLog1p;
  config.schema.features[0].buckets.boundaries = {1, 2, 3};
  expect_same(read(cached(config)), read(config));
  EXPECT_EQ(caches().size(), 1U);
  config.schema.features[4].max_length = 2;
  expect_same(read(cached(config)), read(config));
  EXPECT_EQ(caches().size(), 2U);
}

TEST_F(RowCacheTest, ATimeIsAnotherNumberAndItsPartIsMadeLater) {
  DataConfig config = csv_config(write("log.csv", "y,n\n1,20261120\n0,20261121\n"), {"n"}, {});
  config.schema.features.push_back({.name = "n", .buckets = {.boundaries = {5}}});
  read(cached(config));
  config.schema.numeric.clear();
  config.schema.features[0].buckets = {};
  config.schema.features[0].part = DatePart::kWeekday;
  for (const DatePart part : {DatePart::kWeekday, DatePart::kMonthDay}) {
    config.schema.features[0].part = part;
    expect_same(read(cached(config)), read(config));
    EXPECT_EQ(caches().size(), 2U);
  }
}

TEST_F(RowCacheTest, ADamagedCacheIsNeverWrongDataAndIsReplaced) {
  const DataConfig config = make_files();
  const Stream expected = read(config);
  read(cached(config));
  const std::string good = read_file(cache());
  const std::int64_t rows = ParsedRowFile(cache()).num_rows();
  ASSERT_GE(ParsedRowFile(cache()).blocks().size(), 4U);
  for (std::size_t part = 0; part <= 10; ++part) {
    SCOPED_TRACE(part);
    std::string damaged = good;
    const std::size_t at = part * (good.size() - 1) / 10;
    damaged[at] = static_cast<char>(damaged[at] ^ 16);
    write("cache/" + caches().front(), damaged);
    expect_same(read(cached(config)), expected);
    expect_same(read(cached(config)), expected);
    EXPECT_EQ(ParsedRowFile(cache()).num_rows(), rows);
    write("cache/" + caches().front(), good.substr(0, at));
    expect_same(read(cached(config)), expected);
  }
}

TEST_F(RowCacheTest, ForgedRowsWithTheRightChecksumAreParsedInstead) {
  const DataConfig config = make_files();
  const Schema schema = resolve_schema(config);
  const Stream expected = read(config);
  read(cached(config));
  const auto forge = [&](const std::function<void(RowBlock&)>& change) {
    const std::string path = cache();
    ParsedRowFile file(path);
    const ParsedRowSpace space(path_of("cache"), 0, std::make_shared<JobCaches>());
    const std::unique_ptr<ParsedRowWriter> writer = ParsedRowWriter::open(path, space);
    ASSERT_NE(writer, nullptr);
    RowBlock rows;
    BadRows bad;
    for (std::size_t b = 0; b < file.blocks().size(); ++b) {
      rows.clear(std::ssize(schema.raw_numeric), std::ssize(schema.id_columns));
      file.read(b, schema.labels, rows, bad);
      if (b == 1) change(rows);
      writer->add(rows, bad);
    }
    writer->finish(file.files());
    expect_same(read(cached(config)), expected);
    expect_same(read(cached(config)), expected);
  };
  forge([](RowBlock&) {});
  forge([](RowBlock& rows) { rows.labels[3] = 2.0F; });
  forge([](RowBlock& rows) { std::swap(rows.row_numbers[3], rows.row_numbers[4]); });
  forge([](RowBlock& rows) { rows.row_numbers[0] = 0; });
  forge([](RowBlock& rows) { rows.row_numbers.back() = INT64_MAX - 9; });
}

TEST_F(RowCacheTest, APipeInItsPlaceHoldsNobodyUp) {
  const DataConfig config = make_files();
  read(cached(config));
  const std::string path = cache();
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expect_same(read(cached(config)), read(config));
  EXPECT_TRUE(std::filesystem::is_regular_file(path)) << "it is replaced";
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo((path + ".part").c_str(), 0600), 0);
  expect_same(read(cached(config)), read(config));
}

TEST_F(RowCacheTest, WhatAKilledRunHasLeftIsOverwritten) {
  const DataConfig config = make_files();
  read(cached(config));
  const std::string path = cache();
  std::filesystem::rename(path, path + ".part");
  expect_same(read(cached(config)), read(config));
  EXPECT_EQ(caches().size(), 1U);
  EXPECT_EQ(cache(), path);
}

TEST_F(RowCacheTest, ARunThatStopsEarlyLeavesNothing) {
  const DataConfig config = cached(make_files());
  const Schema schema = resolve_schema(config);
  {
    const auto source = open_batches(Dataset(config), fixed_transforms(schema), Role::kTrain,
                                     {.batch_size = 8, .prefetch_batches = 1});
    Batch batch;
    ASSERT_TRUE(source->next(batch));
  }
  EXPECT_TRUE(caches().empty());
}

TEST_F(RowCacheTest, OneRunWritesAtATime) {
  const DataConfig config = make_files();
  read(cached(config));
  const std::string part = cache() + ".part";
  std::filesystem::remove(cache());
  write("other", "the other run's");
  std::filesystem::rename(path_of("other"), part);
  const int other = ::open(part.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
  expect_same(read(cached(config)), read(config));
  EXPECT_EQ(read_file(part), "the other run's");
  ::close(other);
  read(cached(config));
  EXPECT_EQ(caches().size(), 1U);
}

TEST_F(RowCacheTest, AFullDiskEndsTheCacheAndNotTheRun) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "needs /dev/full";
  const DataConfig config = make_files();
  read(cached(config));
  const std::string path = cache();
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/dev/full", path + ".part");
  expect_same(read(cached(config)), read(config));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(RowCacheTest, ALimitThatTheRowsFitIntoChangesNothing) {
  const DataConfig config = make_files();
  read(cached(config));
  const std::string whole = read_file(cache());
  std::filesystem::remove(cache());
  DataConfig limited = cached(config);
  limited.cache.max_size = std::to_string(whole.size());
  const Dataset data(limited);
  expect_same(read(data, {.epochs = 2}), read(config, {.epochs = 2}));
  EXPECT_EQ(read_file(cache()).size(), whole.size());
  EXPECT_FALSE(data.caches()->has_refused(cache()));
}

TEST_F(RowCacheTest, RowsBeyondTheLimitAreParsedInEachEpoch) {
  const DataConfig config = make_files();
  const Stream expected = read(config, {.epochs = 2});
  read(cached(config));
  const std::string path = cache();
  const auto bytes = std::filesystem::file_size(path);
  for (const std::uintmax_t limit : {std::uintmax_t{1}, bytes / 2, bytes - 1}) {
    std::filesystem::remove(path);
    DataConfig limited = cached(config);
    limited.cache.max_size = std::to_string(limit);
    const Dataset data(limited);
    expect_same(read(data, {.epochs = 2}), expected);
    EXPECT_TRUE(caches().empty());
    EXPECT_TRUE(data.caches()->has_refused(path));
  }
}

TEST_F(RowCacheTest, RowsOfOtherFilesTakeTheRoom) {
  const DataConfig config = make_files();
  read(cached(config));
  const std::string first = cache();
  DataConfig other = cached(config);
  other.cache.max_size = std::to_string(std::filesystem::file_size(first) * 3 / 2);
  std::ranges::reverse(other.train.path);
  const Stream expected = read(other, {.epochs = 2});
  ASSERT_EQ(caches().size(), 1U);
  EXPECT_NE(cache(), first);
  read(cached(config));
  expect_same(read(other, {.epochs = 2}), expected);
  EXPECT_EQ(caches().size(), 1U) << "the limit holds again, and what is read stays";
}

TEST_F(RowCacheTest, AJobKeepsTheCachesOfItsOtherRows) {
  DataConfig config = cached(make_files());
  read(config);
  const std::string first = cache();
  config.cache.max_size = std::to_string(std::filesystem::file_size(first) * 3 / 2);
  config.eval.path = config.train.path;
  std::ranges::reverse(config.eval.path);
  const Dataset data(config);
  read(data);
  read(data, {}, Role::kEval);
  EXPECT_EQ(caches().size(), 1U);
  EXPECT_EQ(cache(), first);
}

TEST_F(RowCacheTest, ALimitNeedsACacheAndASize) {
  DataConfig config = make_files();
  config.cache.max_size = "1GiB";
  EXPECT_TRUE(contains(error_of([&] { validate(config); }, ErrorCode::kInvalidConfig),
                       "data.cache.max_size: has no effect without data.cache.folder"));
  config = cached(config);
  validate(config);
  config.cache.max_size = "much";
  EXPECT_TRUE(contains(error_of([&] { validate(config); }, ErrorCode::kInvalidConfig),
                       "data.cache.max_size: "));
}

TEST_F(RowCacheTest, ABadRowStillEndsARunThatWantsNone) {
  DataConfig config = make_files();
  read(cached(config));
  config.on_bad_row = OnBadRow::kStop;
  const Stream expected = read(config);
  EXPECT_NE(expected.error, "");
  const Stream found = read(cached(config));
  EXPECT_EQ(found.error, expected.error);
  EXPECT_EQ(found.values, expected.values);
}

TEST_F(RowCacheTest, TooManyBadRowsEndTheRunAtTheSameRow) {
  DataConfig config = make_files();
  read(cached(config));
  config.max_bad_rows = "20";
  const Stream expected = read(config);
  EXPECT_TRUE(contains(expected.error, "max_bad_rows")) << expected.error;
  const Stream found = read(cached(config));
  EXPECT_EQ(found.error, expected.error);
  EXPECT_EQ(found.values, expected.values);
}

TEST_F(RowCacheTest, PredictionIsNotCached) {
  DataConfig config = make_files();
  config.eval.path = config.train.path;
  config.group_by = "";
  read(cached(config), {}, Role::kPredict);
  EXPECT_TRUE(caches().empty());
}

TEST_F(RowCacheTest, RowsThatAreReadOnceCannotBeCached) {
  DataConfig config = cached(make_files());
  config.train.path = {"-"};
  EXPECT_TRUE(
      contains(error_of([&] { validate(config); }, ErrorCode::kInvalidConfig), "data.cache"));
  DataConfig synthetic;
  synthetic.format = DataFormat::kSynthetic;
  synthetic.cache.folder = path_of("cache");
  EXPECT_TRUE(
      contains(error_of([&] { validate(synthetic); }, ErrorCode::kInvalidConfig), "data.cache"));
}

}  // namespace
}  // namespace satrap::data
