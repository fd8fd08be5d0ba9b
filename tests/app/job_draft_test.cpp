#include "src/app/job_draft.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/data/schema.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/job/job_config.h"
#include "satrap/job/read_job.h"
#include "tests/support/temporary_directory.h"

namespace satrap::app {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Rows of columns, each a function of the row.
class JobDraftTest : public testing::Test {
 protected:
  JobDraftTest() { sample_.is_whole = true; }

  using Value = std::function<std::string(int row)>;

  void column(const std::string& name, const Value& value) {
    sample_.names.push_back(name);
    sample_.columns.emplace_back();
    for (int row = 0; row < kRows; ++row) sample_.columns.back().push_back(value(row));
  }

  std::string draft(const std::string& label = "", const std::string& config = "job.yaml") {
    sample_.files = {"log.csv"};
    sample_.delimiter = ",";
    sample_.header = true;
    sample_.num_rows = kRows;
    if (sample_.total_rows == 0) sample_.total_rows = kRows;
    return draft_job(sample_, {.data = {"log.csv"}, .label = label, .config = config}).yaml;
  }

  std::string notes() {
    draft();
    std::string text;
    for (const std::string& note :
         draft_job(sample_, {.data = {"log.csv"}, .label = "", .config = "job.yaml"}).notes)
      text += note + "\n";
    return text;
  }

  std::string error(const std::string& label = "") {
    try {
      draft(label);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  /// What satrap reads there.
  static job::JobConfig read(const std::string& yaml) {
    const TemporaryDirectory folder;
    write_file_atomic(folder.path() + "/job.yaml", yaml);
    ConfigOrigins origins;
    return job::read_job(folder.path() + "/job.yaml", {}, origins);
  }

  static constexpr int kRows = 1000;
  static std::string click(int row) { return row * 7 % 10 == 0 ? "1" : "0"; }
  static std::string color(int row) {
    return row % 3 == 0 ? "red" : row % 3 == 1 ? "blue" : "green";
  }

  data::Sample sample_;
};

TEST_F(JobDraftTest, EveryKindOfColumnBecomesAnInputThatTheConfigurationReads) {
  column("click", click);
  column("color", color);
  column("price", [](int row) { return row % 9 == 0 ? "" : std::to_string(row % 400) + ".5"; });
  column("shop", [](int row) { return std::to_string(row * row % 127); });
  column("user_id", [](int row) { return std::to_string(row * row % 251 + 1000); });
  column("tags", [](int row) { return row % 2 == 0 ? "a|b" : row % 4 == 1 ? "b|c" : "c"; });
  column("device", [](int row) { return row % 2 == 0 ? "68fd1e64" : "0009fb0a"; });
  const std::string yaml = draft();
  const job::JobConfig config = read(yaml);
  const data::SchemaConfig& schema = config.data.schema;
  EXPECT_EQ(schema.label.column, "click");
  EXPECT_EQ(config.data.batch_size, 0);  // auto
  EXPECT_THAT(yaml, HasSubstr("early_stopping: {metric: logloss, patience: 5}"));
  EXPECT_THAT(yaml, HasSubstr("{type: adagrad, lr: 0.06, initial_accumulator: 0.01}"));
  EXPECT_EQ(config.data.eval.fraction, 0.2);
  EXPECT_EQ(config.data.eval.by, "hash");
  ASSERT_EQ(schema.numeric.size(), 2U);
  EXPECT_EQ(schema.numeric[0].name, "price");
  EXPECT_TRUE(schema.numeric[0].missing_indicator);
  EXPECT_EQ(schema.numeric[1].name, "shop");
  std::vector<std::string> names;
  for (const data::FeatureConfig& feature : schema.features) names.push_back(feature.name);
  EXPECT_THAT(names, testing::ElementsAre("color", "price_range", "shop", "shop_range", "user_id",
                                          "user_id_range", "tags", "device"));
  EXPECT_EQ(schema.features[6].separator, "|");
  EXPECT_EQ(schema.features[6].max_length, 8);
  EXPECT_EQ(schema.features[7].type, data::IdType::kHex);
  EXPECT_EQ(config.model.type, job::ModelType::kDeepFm);
  EXPECT_TRUE(config.train.early_stopping.is_on());
}

TEST_F(JobDraftTest, WhatCannotBeLearnedFromIsLeftOutWithItsReason) {
  column("click", click);
  column("color", color);
  column("shape", color);
  column("same", [](int) { return "x"; });
  column("row_id", [](int row) { return std::to_string(row * 3); });
  column("empty", [](int) { return "NULL"; });
  column("purchase", [](int row) { return row % 100 == 0 ? "1" : "0"; });
  column("clicked_at", [](int row) { return click(row) == "1" ? "2017-11-07 9:30" : ""; });
  column("color", color);
  const std::string yaml = draft("click");
  EXPECT_THAT(yaml, HasSubstr("#   same: x in every row"));
  EXPECT_THAT(yaml, HasSubstr("#   row_id: another value in every row"));
  EXPECT_THAT(yaml, HasSubstr("#   empty: it has no values"));
  EXPECT_THAT(yaml, HasSubstr("#   purchase: looks like another label"));
  EXPECT_THAT(yaml, HasSubstr("#   clicked_at: tells the label"));
  EXPECT_THAT(yaml, HasSubstr("#   color: two columns have this name"));
}

TEST_F(JobDraftTest, RowsInTheOrderOfATimeKeepTheTail) {
  column("click", click);
  column("color", color);
  column("timestamp", [](int row) { return std::to_string(1'500'000'000 + row * 60); });
  sample_.total_rows = 1'000'000;
  sample_.is_whole = false;
  const std::string yaml = draft();
  EXPECT_THAT(yaml, HasSubstr("eval: {fraction: 0.1, by: tail}"));
  EXPECT_THAT(yaml, HasSubstr("in the order of timestamp"));
  EXPECT_THAT(yaml, HasSubstr("#   timestamp: a time"));
  EXPECT_THAT(yaml, HasSubstr("epochs: 2"));
  EXPECT_THAT(yaml, HasSubstr("about 1,000,000 rows"));
}

TEST_F(JobDraftTest, TextsThatHardlyEverComeBackAreLeftOut) {
  const auto one_of = [](int most) {
    return [=](int row) { return fmt::format("The {} of it", row % most); };
  };
  column("click", click);
  column("title", one_of(950));
  column("shop", one_of(800));
  column("session_id", one_of(950));
  column("tags", [](int row) { return fmt::format("a{}|b{}", row % 31, row % 32); });
  const std::string yaml = draft();
  EXPECT_THAT(yaml, HasSubstr("#   title: 950 different texts in 1000 rows: nearly all would be"));
  for (const char* name : {"shop", "session_id", "tags"}) {
    EXPECT_THAT(yaml, HasSubstr(fmt::format("- {{name: {}", name)));
  }
  sample_.is_whole = false;
  EXPECT_THAT(draft(), HasSubstr("- {name: title"));
}

TEST_F(JobDraftTest, DatesAreTimesHoweverTheyAreWritten) {
  const auto day = [](int row) { return row / 100 % 28 + 1; };
  column("click", click);
  column("color", color);
  column("us", [&](int row) { return fmt::format("03/{:02}/2026", day(row)); });
  column("german", [&](int row) { return fmt::format("{:02}.03.2026", 28 - day(row)); });
  column("compact", [&](int row) { return fmt::format("202603{:02}", day(row * 7)); });
  column("ms",
         [](int row) { return std::to_string(1'700'000'000'000 + row * 7919 % 5000 * 1000); });
  column("createdAt", [](int row) { return std::to_string(1'700'000'000 + row * 7919 % 5000); });
  column("item_id", [](int row) { return std::to_string(1'700'000'000'000 + row * 7919 % 50); });
  const std::string yaml = draft();
  for (const char* name : {"german", "compact", "ms", "createdAt"}) {
    EXPECT_THAT(yaml,
                HasSubstr(fmt::format("#   {}: a time, which does not come back; its hour", name)));
  }
  EXPECT_THAT(yaml, HasSubstr("#   us: a time, which does not come back; not in a form that"));
  EXPECT_THAT(yaml, HasSubstr("by: tail}"));
  EXPECT_THAT(yaml, HasSubstr("in the order of us"));
  EXPECT_THAT(yaml, HasSubstr("{name: item_id, type: int}"));
}

TEST_F(JobDraftTest, NumbersWithADecimalCommaAreReadAsSuch) {
  column("click", click);
  column("price", [](int row) { return std::to_string(row % 50) + ".5"; });
  sample_.delimiter = ";";
  sample_.decimal_comma = true;
  const job::JobConfig config = read(draft());
  EXPECT_EQ(config.data.schema.decimal, data::Decimal::kComma);
  EXPECT_EQ(config.data.schema.numeric[0].name, "price");
  sample_.decimal_comma = false;
  EXPECT_EQ(read(draft()).data.schema.decimal, data::Decimal::kPoint);
}

TEST_F(JobDraftTest, LineEndsWithinQuotesAreSaid) {
  column("click", click);
  column("color", color);
  draft();
  const auto notes = [&] {
    return draft_job(sample_, {.data = {"log.csv"}, .label = "", .config = "j"}).notes;
  };
  EXPECT_THAT(notes(), Not(testing::Contains(HasSubstr("quote"))));
  sample_.num_ragged = sample_.num_open_quotes = 1200;
  EXPECT_THAT(notes(), testing::Contains(HasSubstr("1,200 rows have a quote that is not closed")));
}

TEST_F(JobDraftTest, TheAccumulatorFallsWithTheSquareOfTheBatch) {
  column("click", click);
  column("color", color);
  sample_.total_rows = 75'773;
  EXPECT_THAT(draft(), HasSubstr("lr: 0.06, initial_accumulator: 0.0002}"));  // a batch of 256
}

TEST_F(JobDraftTest, ManyRowsAreSeenOnce) {
  column("click", click);
  column("color", color);
  sample_.total_rows = 45'840'617;
  sample_.is_whole = false;
  const std::string yaml = draft();
  EXPECT_THAT(yaml, HasSubstr("epochs: 1 "));
  EXPECT_THAT(yaml, HasSubstr("about 45,800,000 rows"));
  EXPECT_THAT(yaml, HasSubstr("optimizer: {type: adagrad, lr: 0.02}"));
  EXPECT_THAT(yaml, Not(HasSubstr("early_stopping")));
  EXPECT_THAT(yaml, Not(HasSubstr("shuffle_rows")));
}

TEST_F(JobDraftTest, FromStandardInputNothingIsReadTwice) {
  column("click", click);
  column("price", [](int row) { return std::to_string(row % 50) + ".5"; });
  sample_.is_rereadable = false;
  const std::string yaml = draft();
  const job::JobConfig config = read(yaml);
  EXPECT_FALSE(data::resolve_schema(config.data).needs_fit());
  EXPECT_FALSE(config.data.has_eval());
  EXPECT_EQ(config.data.batch_size, 32);
  EXPECT_EQ(config.data.schema.features[0].buckets.boundaries.size(), 32U);
}

TEST_F(JobDraftTest, LabelsOfEveryForm) {
  struct Case {
    Value value;
    std::string yaml;
  };
  const auto either = [](const std::string& one, const std::string& zero) {
    return [=](int row) { return row % 4 == 0 ? one : zero; };
  };
  const std::vector<Case> cases = {
      {either("1", "0"), "label: bought "},
      {either("1.0", "0.0"), "label: bought "},
      {either("True", "False"), "label: bought "},
      {either("1", "-1"), "label: {column: bought, threshold: 1}"},
      {either("0", "1"), "label: bought "},
      {either("no", "yes"), "label: {column: bought, positive: [\"yes\"], negative: [\"no\"]}"},
      {either(">50K", "<=50K"),
       "label: {column: bought, positive: [\">50K\"], negative: [\"<=50K\"]}"},
      {[](int row) { return std::to_string(row % 5 + 1); },
       "label: {column: bought, threshold: 4}"},
  };
  for (const Case& c : cases) {
    sample_.names.clear();
    sample_.columns.clear();
    column("color", color);
    column("bought", c.value);
    const std::string yaml = draft("bought");
    EXPECT_THAT(yaml, HasSubstr(c.yaml));
    read(yaml);
  }
}

TEST_F(JobDraftTest, ALabelIsFoundByItsNameOrItsPlace) {
  column("color", color);
  column("is_click", click);
  column("weekend", [](int row) { return row % 7 < 2 ? "1" : "0"; });
  EXPECT_THAT(draft(), HasSubstr("label: is_click "));
  sample_.names[1] = "bag";
  EXPECT_THAT(draft(), HasSubstr("label: weekend "));
  EXPECT_THAT(draft(), HasSubstr("the last column, with two values"));
}

TEST_F(JobDraftTest, WithoutALabelTheUserIsAsked) {
  column("a", color);
  column("b", [](int row) { return row % 7 < 2 ? "1" : "0"; });
  column("c", color);
  EXPECT_THAT(error(), HasSubstr("no column looks like a label"));
  EXPECT_THAT(error(), HasSubstr("--label COLUMN (with two values: b)"));
  sample_.columns[1] = sample_.columns[0];
  EXPECT_THAT(error(), HasSubstr("--label COLUMN (there are a, b, c)"));
  EXPECT_THAT(error("bb"), HasSubstr("has no column 'bb'; did you mean 'b'?"));
  EXPECT_THAT(error("a"), HasSubstr("label 'a' has 3 different texts, such as 'red' and 'blue'"));
}

TEST_F(JobDraftTest, NothingToLearnFrom) {
  column("click", click);
  column("same", [](int) { return "x"; });
  EXPECT_THAT(error(),
              HasSubstr("no column beside the label 'click' is left to learn from: same (x in "
                        "every row)"));
}

TEST_F(JobDraftTest, RowsWithoutALabelMayBeMany) {
  column("click", [](int row) { return row % 3 == 0 ? "" : click(row); });
  column("color", color);
  EXPECT_THAT(draft(), HasSubstr("max_bad_rows: 0"));
}

TEST_F(JobDraftTest, HostileNamesAndTextsStayInTheirPlace) {
  column("y", click);
  column("a: b, #\"c\"\n  d", color);
  column("color", [](int row) { return row % 2 == 0 ? "\x1b[2J\nmodel: dlrm" : "x"; });
  column("same\ntrain: x", [](int) { return "1\n2"; });
  const job::JobConfig config = read(draft("y"));
  EXPECT_EQ(config.data.schema.features[0].name, "a: b, #\"c\"\n  d");
  EXPECT_EQ(config.model.type, job::ModelType::kDeepFm);
}

TEST_F(JobDraftTest, NamesThatMeanSomethingElseAreReplacedOrLeftOut) {
  const auto number = [](int row) { return std::to_string(row % 100) + ".5"; };
  column("click", click);
  column("default", color);
  column("default_id", color);
  column("C1..C3", color);
  column("Price....", number);
  column("price", number);
  column("price_range", color);
  const std::string yaml = draft();
  EXPECT_THAT(yaml, HasSubstr("- {name: default_id_, column: default}"));
  EXPECT_THAT(yaml, HasSubstr("- {name: price_range_, column: price, "));
  EXPECT_THAT(yaml, HasSubstr("#   C1..C3: such a name stands for several columns"));
  EXPECT_THAT(yaml, HasSubstr("- {name: Price____, column: Price...., transform: "));
  read(yaml);
}

TEST_F(JobDraftTest, NumbersAsLargeAsTimesMayBeIds) {
  column("click", click);
  column("item_id", [](int row) { return std::to_string(1'200'000'000 + row * 7919 % 300); });
  EXPECT_THAT(draft(), HasSubstr("{name: item_id, type: int}"));
}

TEST_F(JobDraftTest, ManyNumbersDoWithoutRanges) {
  column("click", click);
  for (int i = 0; i < 600; ++i) {
    column("n" + std::to_string(i), [](int row) { return std::to_string(row % 100); });
  }
  const job::JobConfig config = read(draft());
  EXPECT_EQ(config.data.schema.numeric.size(), 600U);
  EXPECT_EQ(config.data.schema.features.size(), 1000U);
}

TEST_F(JobDraftTest, TrainingStopsByTheLoss) {
  column("click", click);
  column("color", color);
  EXPECT_THAT(draft(), HasSubstr("{metric: logloss, patience: 5}"));
}

TEST_F(JobDraftTest, MoreColumnsThanTablesShareOne) {
  column("click", click);
  for (int i = 0; i < 1100; ++i) column("c" + std::to_string(i), color);
  const std::string yaml = draft();
  EXPECT_THAT(yaml, HasSubstr("features: {default: {table: shared}}"));
  EXPECT_EQ(job::embedding_specs(read(yaml), data::resolve_schema(read(yaml).data)).tables.size(),
            1U);
}

TEST_F(JobDraftTest, AHistoryAndACandidateAreShownToDin) {
  const auto item = [](int row) { return "i" + std::to_string(row * 7 % 50); };
  column("click", click);
  column("item", item);
  column("history", [&](int row) { return item(row) + " " + item(row + 3) + " " + item(row + 5); });
  const std::string yaml = draft();
  EXPECT_THAT(yaml, HasSubstr("{name: history, separator: \" \", max_length: 12}"));
  EXPECT_THAT(yaml,
              HasSubstr("#   model: {type: din, attend: [{sequence: history, query: item}]}"));
}

TEST_F(JobDraftTest, AGuessIsSaidToBeOne) {
  column("color", color);
  column("alone", click);
  EXPECT_THAT(notes(), HasSubstr("look at     label alone: a guess; name the column with --label"));
  column("stars", [](int row) { return std::to_string(1 + row % 5); });
  EXPECT_THAT(notes(), HasSubstr("label       stars: its name is that of a label"));
}

TEST_F(JobDraftTest, ATraitWithTheNameOfALabelIsAnInput) {
  column("click", click);
  column("class", [](int row) { return row % 3 == 0 ? "a" : "b"; });
  EXPECT_THAT(draft(), HasSubstr("- {name: class}"));
}

TEST_F(JobDraftTest, ElsewherePathsAreAbsolute) {
  column("click", click);
  column("color", color);
  EXPECT_THAT(draft(), HasSubstr("train: log.csv "));
  EXPECT_THAT(draft("", "jobs/job.yaml"), testing::ContainsRegex("train: \"?/.*/log.csv"));
}

TEST_F(JobDraftTest, NumbersThatTellTheLabelAreLeftOutAndStrongOnesAreDoubted) {
  column("click", click);
  column("color", color);
  column("delay",
         [](int row) { return std::to_string((click(row) == "1" ? 500 : 0) + row % 400); });
  column("early",
         [](int row) { return std::to_string((click(row) == "1" ? 300 : 0) + row % 400); });
  column("plain", [](int row) { return std::to_string(row * row % 401); });
  const std::string yaml = draft("click");
  EXPECT_THAT(yaml, HasSubstr("delay: alone it tells the label, with auc 1.0000"));
  std::set<std::string> numbers;
  for (const auto& input : read(yaml).data.schema.numeric) numbers.insert(input.name);
  EXPECT_EQ(numbers, (std::set<std::string>{"early", "plain"}));
  EXPECT_THAT(yaml, HasSubstr("alone it tells much of the label: auc 0.9"));
}

TEST_F(JobDraftTest, WhatAscendsWithTheTimeIsLeftOutWhereTheLastRowsAreEvaluated) {
  column("click", click);
  column("color", color);
  column("month", [](int row) { return std::to_string(1 + row / 250); });
  EXPECT_THAT(draft("click"), HasSubstr("{name: month, type: int}"));
  column("time", [](int row) { return std::to_string(1'500'000'000 + 60 * row); });
  const std::string yaml = draft("click");
  EXPECT_THAT(yaml, HasSubstr("by: tail"));
  EXPECT_THAT(yaml, HasSubstr("month: ascends with the time"));
}

TEST_F(JobDraftTest, TheThresholdOfANumberIsNamedWithItsShare) {
  column("stars", [](int row) { return std::to_string(row % 5); });
  column("color", color);
  EXPECT_THAT(draft("stars"), HasSubstr("numbers of at least 3 mean 1, which are 40 %"));
}

}  // namespace
}  // namespace satrap::app
