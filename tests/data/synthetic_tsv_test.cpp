#include "satrap/data/synthetic_tsv.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/data/open_rows.h"
#include "tests/support/temporary_directory.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kRows = 20'000;  // several pieces of the writer

SyntheticConfig criteo_config() {
  SyntheticConfig config;
  config.rows = kRows;
  config.scale = 0.01;
  config.empty_rate = {0.05};
  return config;
}

/// All rows of one pass in one block.
RowBlock read_all(RowBlockSource& source) {
  RowBlock all, block;
  all.clear(13, 26);
  while (source.next(block)) {
    all.num_rows += block.num_rows;
    all.labels.insert(all.labels.end(), block.labels.begin(), block.labels.end());
    for (std::size_t c = 0; c < 13; ++c) {
      all.numeric[c].insert(all.numeric[c].end(), block.numeric[c].begin(), block.numeric[c].end());
    }
    for (std::size_t f = 0; f < 26; ++f) {
      auto& to = all.bags[f];
      const std::int64_t begin = to.offsets.back();
      for (std::size_t r = 1; r < block.bags[f].offsets.size(); ++r) {
        to.offsets.push_back(begin + block.bags[f].offsets[r]);
      }
      to.ids.insert(to.ids.end(), block.bags[f].ids.begin(), block.bags[f].ids.end());
    }
  }
  return all;
}

RowBlock read_file_back(const std::string& path) {
  DataConfig config;
  config.schema_name = "criteo";
  config.train.path = {path};
  return read_all(*open_rows(Dataset(config), Role::kTrain, RowPass{}));
}

void expect_same(const RowBlock& actual, const RowBlock& expected) {
  ASSERT_EQ(actual.num_rows, expected.num_rows);
  EXPECT_EQ(actual.labels, expected.labels);
  for (std::size_t c = 0; c < 13; ++c) {
    for (std::size_t r = 0; r < expected.labels.size(); ++r) {
      const double a = actual.numeric[c][r], e = expected.numeric[c][r];
      ASSERT_TRUE(a == e || (std::isnan(a) && std::isnan(e))) << "I" << c + 1 << " of row " << r;
    }
  }
  for (std::size_t f = 0; f < 26; ++f) {
    EXPECT_EQ(actual.bags[f].offsets, expected.bags[f].offsets) << "C" << f + 1;
    EXPECT_EQ(actual.bags[f].ids, expected.bags[f].ids) << "C" << f + 1;
  }
}

TEST(SyntheticTsv, WritesOneLineOfFortyFieldsPerRow) {
  const SyntheticGenerator generator(criteo_config());
  RowBlock block;
  block.clear(13, 26);
  block.num_rows = 1;
  block.labels = {1};
  for (auto& column : block.numeric) column = {std::nanf("")};
  block.numeric[0] = {12};
  block.numeric[1] = {-3};
  block.numeric[12] = {16'777'215};
  for (auto& bags : block.bags) bags.offsets.push_back(0);
  block.bags[0].ids = {0x00c0ffee};
  block.bags[0].offsets = {0, 1};
  block.bags[25].ids = {0xffffffff};
  block.bags[25].offsets = {0, 1};
  std::string text = "before\n";
  append_criteo_tsv(generator, block, text);
  EXPECT_EQ(text, "before\n1\t12\t-3" + std::string(11, '\t') + "16777215\t00c0ffee" +
                      std::string(25, '\t') + "ffffffff\n");
}

TEST(SyntheticTsv, IsReadBackAsTheRowsThatWereGenerated) {
  const TemporaryDirectory directory;
  const SyntheticGenerator generator(criteo_config());
  RowBlock expected;
  generator.generate(500, kRows, expected);
  for (const std::string name : {"rows.tsv", "rows.tsv.gz", "rows.tsv.zst"}) {
    SCOPED_TRACE(name);
    const std::string path = directory.path() + "/" + name;
    const WrittenLog log = write_criteo_tsv(generator, 500, kRows, path, 2);
    EXPECT_EQ(log.bytes, static_cast<std::int64_t>(std::filesystem::file_size(path)));
    expect_same(read_file_back(path), expected);
  }
  EXPECT_EQ(list_directory(directory.path()).size(), 3U);  // no temporary file is left
  EXPECT_LT(std::filesystem::file_size(directory.path() + "/rows.tsv.gz"),
            std::filesystem::file_size(directory.path() + "/rows.tsv") * 3 / 4);
}

TEST(SyntheticTsv, IsReadBackAsTheDirectFeedGivesIt) {
  const TemporaryDirectory directory;
  DataConfig direct;
  direct.format = DataFormat::kSynthetic;
  direct.synthetic = criteo_config();
  direct.synthetic.eval_rows = 700;
  const SyntheticGenerator generator(direct.synthetic);
  const std::string train = directory.path() + "/train.tsv", eval = directory.path() + "/eval.tsv";
  write_criteo_tsv(generator, 0, kRows, train, 1);
  write_criteo_tsv(generator, kRows, 700, eval, 1);
  expect_same(read_file_back(train),
              read_all(*open_rows(Dataset(direct), Role::kTrain, RowPass{})));
  expect_same(read_file_back(eval), read_all(*open_rows(Dataset(direct), Role::kEval, RowPass{})));
}

TEST(SyntheticTsv, WideIdsSurvive) {
  const TemporaryDirectory directory;
  SyntheticConfig config = criteo_config();
  config.scale = 1e6;
  config.zipf = {0.8};
  const SyntheticGenerator generator(config);
  RowBlock expected;
  generator.generate(0, 3000, expected);
  const std::string path = directory.path() + "/rows.tsv";
  write_criteo_tsv(generator, 0, 3000, path, 1);
  expect_same(read_file_back(path), expected);
}

TEST(SyntheticTsv, DoesNotDependOnTheNumberOfThreads) {
  const TemporaryDirectory directory;
  const SyntheticGenerator generator(criteo_config());
  const std::string one = directory.path() + "/1.gz", three = directory.path() + "/3.gz";
  write_criteo_tsv(generator, 0, 50'000, one, 1);
  write_criteo_tsv(generator, 0, 50'000, three, 3);
  EXPECT_EQ(read_file(one), read_file(three));
}

TEST(SyntheticTsv, ReportsWhatCanBeLearntAndHowManyIdsOccur) {
  const TemporaryDirectory directory;
  const SyntheticGenerator generator(criteo_config());
  const WrittenLog log = write_criteo_tsv(generator, 0, kRows, directory.path() + "/rows.tsv", 2);
  EXPECT_EQ(log.best.rows, kRows);
  EXPECT_NEAR(log.best.base_rate, 0.256, 0.01);
  EXPECT_NEAR(log.best.auc, log.best.expected_auc, 0.01);
  ASSERT_EQ(log.distinct_ids.size(), 26U);
  EXPECT_EQ(log.distinct_ids[0], 15);    // all of 1460 * 0.01
  EXPECT_EQ(log.distinct_ids[8], 1);     // 3 * 0.01, but at least one
  EXPECT_GT(log.distinct_ids[2], 4000);  // of 101,312, as many as 19,000 draws find
  EXPECT_LT(log.distinct_ids[2], 19'000);
}

TEST(SyntheticTsv, AFailureLeavesNothingBehind) {
  const TemporaryDirectory directory;
  const SyntheticGenerator generator(criteo_config());
  EXPECT_THROW(write_criteo_tsv(generator, 0, 10, directory.path() + "/none/rows.tsv", 1), Error);
  EXPECT_THROW(write_criteo_tsv(generator, 0, 10, directory.path(), 1), Error);
  EXPECT_TRUE(list_directory(directory.path()).empty());
}

TEST(SyntheticTsv, WritesToDevicesAsTheyAre) {
  const SyntheticGenerator generator(criteo_config());
  write_criteo_tsv(generator, 0, 10, "/dev/null", 1);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  try {
    write_criteo_tsv(generator, 0, kRows, "/dev/full", 1);
    FAIL() << "a full device took " << kRows << " rows";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_EQ(std::string(error.what()), "/dev/full: cannot be written: No space left on device");
  }
}

TEST(SyntheticTsv, RefusesAnotherShape) {
  const auto refused = [](auto spoil) {
    SyntheticConfig config;
    spoil(config);
    EXPECT_THROW(check_criteo_shape(config, "here"), Error);
  };
  EXPECT_NO_THROW(check_criteo_shape(SyntheticConfig{}, "here"));
  refused([](SyntheticConfig& c) { c.num_numeric = 12; });
  refused([](SyntheticConfig& c) { c.cardinalities.pop_back(); });
  refused([](SyntheticConfig& c) { c.max_ids = {2}; });
}

}  // namespace
}  // namespace satrap::data
