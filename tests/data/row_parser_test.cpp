#include "src/data/text/row_parser.h"

#include "satrap/core/hash.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using Ids = std::vector<std::uint64_t>;
using Strings = std::vector<std::string>;

std::string repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// ------------------------------------------------------------------------------ Criteo

class CriteoReader : public FilesTest {
 protected:
  ReadResult read(const std::string& text) {
    DataConfig config;
    config.schema_name = "criteo";
    config.train.path = {write("log.tsv", text)};
    return read_text(config);
  }
};

TEST_F(CriteoReader, ReadsLabelIntegersAndHexIds) {
  const ReadResult result = read("1\t5\t-3" + repeat("\t7", 11) + "\t68fd1e64" +
                                 repeat("\t0000000A", 24) + "\tffffffff\n");
  ASSERT_EQ(result.rows.size(), 1U);
  const ParsedRow& row = result.rows[0];
  EXPECT_EQ(row.label, 1.0F);
  EXPECT_EQ(row.numeric[0], show(5));
  EXPECT_EQ(row.numeric[1], show(-3));
  EXPECT_EQ(row.numeric[12], show(7));
  EXPECT_EQ(row.bags[0], Ids{0x68FD1E64});
  EXPECT_EQ(row.bags[24], Ids{10});
  EXPECT_EQ(row.bags[25], Ids{0xFFFFFFFF});
}

TEST_F(CriteoReader, BlankIntegerIsMissingAndBlankIdAnEmptyBag) {
  const ReadResult result = read("0" + repeat("\t", 39) + "\n");
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0].numeric, Strings(13, "-"));
  EXPECT_EQ(result.rows[0].bags, std::vector<Ids>(26));
}

TEST_F(CriteoReader, ReadsWindowsLineEndsAndALastLineWithoutOne) {
  const std::string line = "1" + repeat("\t1", 13) + repeat("\t000000ff", 25);
  const ReadResult result = read(line + "\t\r\n" + line + "\t000000aa\r\n" + line + "\t000000bb");
  ASSERT_EQ(result.rows.size(), 3U);
  EXPECT_EQ(result.rows[0].bags[25], Ids{});
  EXPECT_EQ(result.rows[1].bags[25], Ids{0xAA});
  EXPECT_EQ(result.rows[2].bags[25], Ids{0xBB});
}

TEST_F(CriteoReader, ABadRowIsNamedByFileLineAndColumn) {
  const std::string good = "0" + repeat("\t", 39) + "\n";
  const ReadResult result =
      read(good + "0\t\t\tx" + repeat("\t", 36) + "\n" + good + "2" + repeat("\t", 39) + "\n" +
           "0" + repeat("\t", 38) + "xyz\t\n" + repeat("\t", 39) + "\n");
  EXPECT_EQ(result.rows.size(), 2U);
  const std::string file = "bad row skipped: " + path_of("log.tsv");
  EXPECT_EQ(result.bad,
            (Strings{file + ":2: column 'I3': expected a number, got \"x\"",
                     file + ":4: column 'label': expected 0 or 1 (`positive` or "
                            "`threshold` say what else means 1), got \"2\"",
                     file + ":5: column 'C25': expected up to 16 hex digits, got \"xyz\"",
                     file + ":6: column 'label': the label is missing"}));
  EXPECT_EQ(result.num_bad, 4);
}

TEST_F(CriteoReader, AWrongNumberOfColumnsIsSaidRatherThanWhatItLeadsTo) {
  // The unlabelled file of Kaggle: a number stands where the label should be.
  const ReadResult result = read("17" + repeat("\t", 38) + "\n" + "0" + repeat("\t", 40) + "\nx\n");
  const std::string file = "bad row skipped: " + path_of("log.tsv");
  EXPECT_EQ(result.bad, (Strings{file + ":1: expected 40 columns, got 39",
                                 file + ":2: expected 40 columns, got 41",
                                 file + ":3: expected 40 columns, got 1"}));
}

TEST_F(CriteoReader, WhatABadRowLeftBehindIsInNoOtherRow) {
  const std::string ids = repeat("\t000000ff", 25);
  const ReadResult result = read("1" + repeat("\t1", 13) + ids + "\tbad!\n" + "0" +
                                 repeat("\t", 13) + repeat("\t", 26) + "\n");
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0].bags, std::vector<Ids>(26));
  EXPECT_EQ(result.rows[0].number, 1);
}

// --------------------------------------------------------------------------------- CSV

class CsvReader : public FilesTest {
 protected:
  ReadResult read(const std::string& text) {
    config_.train.path = {write("log.csv", text)};
    return read_text(config_);
  }
  std::string shown(int line, const std::string& message) {
    return "bad row skipped: " + path_of("log.csv") + ":" + std::to_string(line) + ": " + message;
  }

  DataConfig config_ = csv_config("", {"n"}, {"f"});
};

TEST_F(CsvReader, ADecimalCommaIsOneOfEveryNumber) {
  config_.schema.delimiter = ";";
  config_.schema.decimal = Decimal::kComma;
  config_.schema.label.threshold = {0.5};
  config_.schema.features[0].separator = "|";
  config_.schema.features[0].weight_separator = ":";
  const ReadResult result =
      read("y;n;f\n0,5;-39,02;a:0,25|b\n0;7;c\n1;\"1,5e2\";c\n0;1.5;c\n0;1,2,3;c\n1,5;;d:0.5\n");
  ASSERT_EQ(result.rows.size(), 3U);
  EXPECT_EQ(result.rows[0].label, 1.0F);
  EXPECT_EQ(result.rows[1].label, 0.0F);
  EXPECT_EQ(result.rows[0].numeric[0], show(-39.02));
  EXPECT_EQ(result.rows[1].numeric[0], show(7));
  EXPECT_EQ(result.rows[2].numeric[0], show(150));
  EXPECT_EQ(result.rows[0].weights[0], (std::vector<float>{0.25F, 1.0F}));
  const std::string reason = "expected a number, with a decimal comma (data.schema.decimal), got ";
  EXPECT_EQ(result.bad,
            (Strings{shown(5, "column 'n': " + reason + "\"1.5\""),
                     shown(6, "column 'n': " + reason + "\"1,2,3\""),
                     shown(7, "column 'f': expected a number as the weight, got \"d:0.5\"")}));
}

TEST_F(CsvReader, ColumnsAreFoundByTheirNamesInEachFile) {
  config_.train.path = {write("1", "y,n,f\n1,2,a\n"), write("2", "f,other,n,y\nb,?,3,0\n")};
  const ReadResult result = read_text(config_);
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].numeric, Strings{show(2)});
  EXPECT_EQ(result.rows[0].bags[0], Ids{hash_bytes("a")});
  EXPECT_EQ(result.rows[1].numeric, Strings{show(3)});
  EXPECT_EQ(result.rows[1].bags[0], Ids{hash_bytes("b")});
  EXPECT_EQ(result.rows[1].label, 0.0F);
  EXPECT_EQ(result.rows[1].number, 1);
}

TEST_F(CsvReader, AnUnknownColumnComesWithTheNearestName) {
  const std::string message =
      error_of([&] { read("click,n,f\n1,2,a\n"); }, ErrorCode::kInvalidConfig);
  EXPECT_TRUE(contains(message, "log.csv:1: there is no column 'y', which the label reads"))
      << message;
  config_.schema.label.column = "clik";
  EXPECT_TRUE(contains(error_of([&] { read("click,n,f\n1,2,a\n"); }, ErrorCode::kInvalidConfig),
                       "did you mean 'click'?"));
}

TEST_F(CsvReader, AColumnThatIsThereTwiceIsAmbiguous) {
  EXPECT_TRUE(contains(error_of([&] { read("y,n,f,n\n1,2,a,3\n"); }, ErrorCode::kInvalidConfig),
                       "two columns are named 'n'"));
}

TEST_F(CsvReader, WithoutHeaderAndNamesColumnsAreNumbered) {
  config_.schema.header = false;
  config_.schema.label.column = "2";
  config_.schema.numeric[0].column = "0";
  config_.schema.features[0].column = "1";
  const ReadResult result = read("5,a,1\n");
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0].numeric, Strings{show(5)});
  EXPECT_EQ(result.rows[0].label, 1.0F);
  config_.schema.label.column = "3";
  EXPECT_TRUE(contains(error_of([&] { read("5,a,1\n"); }, ErrorCode::kInvalidConfig),
                       "this file has 0 to 2"));
}

TEST_F(CsvReader, QuotesHoldDelimitersAndDoubledQuotes) {
  const ReadResult result = read(
      "\"y\",\"n\",f\n1,\"2.5\",\"a,b\"\n0, \"3\" ,\"say \"\"hi\"\"\"\n1,,\"\"\"\"\r\n0,4,\"\"\n");
  ASSERT_EQ(result.rows.size(), 4U) << result.bad[0];
  EXPECT_EQ(result.rows[0].numeric, Strings{show(2.5)});
  EXPECT_EQ(result.rows[0].bags[0], Ids{hash_bytes("a,b")});
  EXPECT_EQ(result.rows[1].numeric, Strings{show(3)});
  EXPECT_EQ(result.rows[1].bags[0], Ids{hash_bytes("say \"hi\"")});
  EXPECT_EQ(result.rows[2].bags[0], Ids{hash_bytes("\"")});
  EXPECT_EQ(result.rows[3].bags[0], Ids{});
}

TEST_F(CsvReader, AQuoteThatIsNotClosedIsRefused) {
  const std::string text = "y,n,f\n1,2,\"a\nb\"\n1,2,\"a\" b\n1,2,c\n1,2,\"d\n";
  const ReadResult result = read(text);
  EXPECT_EQ(result.rows.size(), 2U);
  ASSERT_EQ(result.bad.size(), 2U);
  EXPECT_EQ(result.bad[0], shown(4, "column 'f': text after a closing quote"));
  EXPECT_EQ(result.bad[1], shown(6, "column 'f': a quote is not closed within 1 MiB"));
  config_.schema.value_rule = 1;
  EXPECT_EQ(read(text).bad.at(0),
            shown(2,
                  "column 'f': a quote is not closed on its line (with data.schema.value_rule: 1 "
                  "line ends within quotes are not read)"));
}

TEST_F(CsvReader, QuotesMayHaveNoMeaning) {
  config_.schema.quote = "";
  EXPECT_EQ(read("y,n,f\n1,2,\"a\n").rows[0].bags[0], Ids{hash_bytes("\"a")});
}

TEST_F(CsvReader, SpacesAroundFieldsAreDroppedUnlessWanted) {
  EXPECT_EQ(read("y, n, f\n1, 2 , a b \n").rows[0].bags[0], Ids{hash_bytes("a b")});
  config_.schema.trim = false;
  EXPECT_EQ(read("y,n,f\n1,2, a b \n").rows[0].bags[0], Ids{hash_bytes(" a b ")});
}

TEST_F(CsvReader, BlankLinesAreSkippedButNumbered) {
  const ReadResult result = read("y,n,f\n\n1,2,a\n\r\n0,3,b\n\n");
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].number, 1);
  EXPECT_EQ(result.rows[1].number, 3);
  EXPECT_EQ(result.num_bad, 0);
}

TEST_F(CsvReader, AByteOrderMarkIsNotPartOfTheHeader) {
  EXPECT_EQ(read("\xEF\xBB\xBFy,n,f\n1,2,a\n").rows.size(), 1U);
}

TEST_F(CsvReader, AFileMayHoldNothingButItsHeader) {
  EXPECT_EQ(read("y,n,f\n").rows.size(), 0U);
  EXPECT_EQ(read("y,n,f").rows.size(), 0U);
}

TEST_F(CsvReader, TokensForMissingValuesAreTheUsersChoice) {
  config_.schema.missing = {"?", "-1"};
  const ReadResult result = read("y,n,f\n1,?,?\n1,-1,x\n1,-2,-1\n");
  ASSERT_EQ(result.rows.size(), 3U);
  EXPECT_EQ(result.rows[0].numeric, Strings{"-"});
  EXPECT_EQ(result.rows[0].bags[0], Ids{});
  EXPECT_EQ(result.rows[1].numeric, Strings{"-"});
  EXPECT_EQ(result.rows[2].numeric, Strings{show(-2)});
  EXPECT_EQ(result.rows[2].bags[0], Ids{});
}

/// What pandas, SQL and others write.
TEST_F(CsvReader, WordsForNoNumberAreMissingWhereANumberIsExpected) {
  for (const IdType type : {IdType::kInt, IdType::kHex}) {
    config_.schema.features[0].type = type;
    config_.schema.features[0].separator = "|";
    for (const char* word : {"NaN", "nan", "NULL", "null", "NA", "n/a", "None", "\\N"}) {
      const std::string w = word;
      const ReadResult result =
          read("y,n,f\n1," + w + "," + w + "\n0,5,7|" + w + "|8\n" + w + ",5,7\n");
      ASSERT_EQ(result.rows.size(), 2U) << word;
      EXPECT_EQ(result.rows[0].numeric, Strings{"-"}) << word;
      EXPECT_EQ(result.rows[0].bags[0], Ids{}) << word;
      EXPECT_EQ(result.rows[1].bags[0], (Ids{7, 8})) << word;
      EXPECT_EQ(result.bad[0], shown(4, "column 'y': the label is missing"));
    }
  }
  const ReadResult result = read("y,n,f\n1,inf,7\n1,nano,7\n1,0,nul\n");
  EXPECT_EQ(result.rows.size(), 0U);
  config_.schema.features[0].missing = MissingId::kOwnId;
  EXPECT_EQ(read("y,n,f\n1,2,NULL\n").rows[0].bags[0], Ids{kMissingId});
  config_.schema.features[0].type = IdType::kString;
  EXPECT_EQ(read("y,n,f\n1,2,NULL\n").rows[0].bags[0], Ids{hash_bytes("NULL")});
}

TEST_F(CsvReader, ALabelMayBeATruthValue) {
  const ReadResult result = read("y,n,f\nTrue,1,a\nFALSE,1,a\ntrue,1,a\ntruth,1,a\n");
  ASSERT_EQ(result.rows.size(), 3U);
  EXPECT_EQ(result.rows[0].label, 1.0F);
  EXPECT_EQ(result.rows[1].label, 0.0F);
  EXPECT_EQ(result.rows[2].label, 1.0F);
  EXPECT_EQ(result.bad[0], shown(5, "column 'y': expected a number, got \"truth\""));
}

TEST_F(CsvReader, AMissingIdMayHaveAnIdOfItsOwn) {
  for (const auto& [word, type] : kIdTypes) {
    config_.schema.features[0].type = type;
    config_.schema.features[0].missing = MissingId::kOwnId;
    const ReadResult result = read("y,n,f\n1,2,\n1,2,7\n");
    EXPECT_EQ(result.rows[0].bags[0], Ids{kMissingId}) << word;
    EXPECT_EQ(result.rows[1].bags[0].size(), 1U) << word;
  }
}

TEST_F(CsvReader, ALabelMayBeOneOfSomeTexts) {
  config_.schema.label.positive = {">50K", ">50K."};
  ReadResult result = read("y,n,f\n>50K.,1,a\n<=50K,1,a\n>50K,1,a\n");
  EXPECT_EQ(result.rows[0].label, 1.0F);
  EXPECT_EQ(result.rows[1].label, 0.0F);
  EXPECT_EQ(result.rows[2].label, 1.0F);
  config_.schema.label.negative = {"<=50K"};
  result = read("y,n,f\n<=50K,1,a\n50K,1,a\n");
  EXPECT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.bad[0], shown(3,
                                 "column 'y': not among the label's positive and negative "
                                 "texts, got \"50K\""));
}

TEST_F(CsvReader, ALabelMayBeANumberWithAThreshold) {
  config_.schema.label.threshold = {4};
  const ReadResult result = read("y,n,f\n3.5,1,a\n4.0,1,a\nx,1,a\n");
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].label, 0.0F);
  EXPECT_EQ(result.rows[1].label, 1.0F);
}

TEST_F(CsvReader, IntegerIdsHaveSixtyFourBits) {
  config_.schema.features[0].type = IdType::kInt;
  const ReadResult result =
      read("y,n,f\n1,2,18446744073709551615\n1,2,-1\n1,2,18446744073709551616\n1,2,1.5\n");
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].bags[0], Ids{UINT64_MAX});
  EXPECT_EQ(result.rows[1].bags[0], Ids{UINT64_MAX});
  EXPECT_EQ(result.bad[1], shown(5, "column 'f': expected an integer of 64 bits, got \"1.5\""));
}

TEST_F(CsvReader, ABagHasASeparator) {
  config_.schema.features[0].type = IdType::kInt;
  config_.schema.features[0].separator = "|";
  const ReadResult result = read("y,n,f\n1,2,3|1|2\n1,2,\n1,2,|5||\n1,2,6| 7\n1,2,8|x\n");
  ASSERT_EQ(result.rows.size(), 4U);
  EXPECT_EQ(result.rows[0].bags[0], (Ids{3, 1, 2}));
  EXPECT_EQ(result.rows[1].bags[0], Ids{});
  EXPECT_EQ(result.rows[2].bags[0], Ids{5});
  EXPECT_EQ(result.rows[3].bags[0], (Ids{6, 7}));
  EXPECT_EQ(result.bad[0], shown(6, "column 'f': expected an integer of 64 bits, got \"x\""));
}

TEST_F(CsvReader, ALongSequenceKeepsItsFirstOrLastIds) {
  FeatureConfig& feature = config_.schema.features[0];
  feature = {.name = "f", .type = IdType::kInt, .separator = " ", .max_length = 2, .buckets = {}};
  EXPECT_EQ(read("y,n,f\n1,2,1 2 3 4\n").rows[0].bags[0], (Ids{1, 2}));
  feature.keep = KeptIds::kLast;
  const ReadResult result = read("y,n,f\n1,2,1 2 3 4\n1,2,5\n1,2,6 7 8\n");
  EXPECT_EQ(result.rows[0].bags[0], (Ids{3, 4}));
  EXPECT_EQ(result.rows[1].bags[0], Ids{5});
  EXPECT_EQ(result.rows[2].bags[0], (Ids{7, 8}));
}

TEST_F(CsvReader, IdsMayHaveWeights) {
  FeatureConfig& feature = config_.schema.features[0];
  feature = {.name = "f",
             .type = IdType::kInt,
             .separator = "|",
             .weight_separator = ":",
             .max_length = 2,
             .keep = KeptIds::kLast,
             .buckets = {}};
  const ReadResult result = read("y,n,f\n1,2,1:0.5|2|3:-2\n1,2,\n1,2,4:0\n1,2,5:x\n");
  ASSERT_EQ(result.rows.size(), 3U);
  EXPECT_EQ(result.rows[0].bags[0], (Ids{2, 3}));
  EXPECT_EQ(result.rows[0].weights[0], (std::vector<float>{1, -2}));
  EXPECT_EQ(result.rows[2].weights[0], std::vector<float>{0});
  EXPECT_EQ(result.bad[0], shown(5, "column 'f': expected a number as the weight, got \"5:x\""));
}

TEST_F(CsvReader, ABagMayHaveAnyLength) {
  config_.schema.features[0].type = IdType::kInt;
  config_.schema.features[0].separator = "|";
  std::string text = "y,n,f\n1,2,0";
  for (int i = 1; i < 5000; ++i) text += "|" + std::to_string(i);
  const ReadResult result = read(text + "\n1,2,9\n");
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].bags[0].size(), 5000U);
  EXPECT_EQ(result.rows[0].bags[0].back(), 4999U);
  EXPECT_EQ(result.rows[1].bags[0], Ids{9});
}

TEST_F(CsvReader, OneColumnMayFeedSeveralInputs) {
  config_ = csv_config("", {"n"}, {"n"});
  config_.schema.features[0].type = IdType::kInt;
  const ReadResult result = read("y,n\n1,7\n0,\n");
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].numeric, Strings{show(7)});
  EXPECT_EQ(result.rows[0].bags[0], Ids{7});
  EXPECT_EQ(result.rows[1].bags[0], Ids{});
}

TEST_F(CsvReader, ALongFieldIsCutInItsMessage) {
  EXPECT_EQ(read("y,n,f\n1," + std::string(1000, 'x') + ",a\n").bad[0],
            shown(2, "column 'n': expected a number, got \"" + std::string(40, 'x') + "...\""));
}

}  // namespace
}  // namespace satrap::data
