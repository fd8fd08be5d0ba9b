#include "src/data/text/libsvm_fields.h"

#include "satrap/core/hash.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/validate.h"
#include "src/data/rows/row_selection.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using Strings = std::vector<std::string>;
using Ids = std::vector<std::uint64_t>;

class Libsvm : public FilesTest {
 protected:
  /// A job whose label is "label"; its features read integers, and weights if they are named so.
  DataConfig config(const std::string& text,
                    DataFormat format,
                    const Strings& numbers,
                    const Strings& features,
                    const std::string& weight_separator = "") {
    DataConfig config = csv_config(write("log.txt", text), numbers, features);
    config.format = format;
    config.schema.label.column = "label";
    for (FeatureConfig& feature : config.schema.features) {
      feature.type = IdType::kInt;
      feature.weight_separator = weight_separator;
    }
    return config;
  }
  std::string refusal(const DataConfig& config) {
    return error_of([&] { validate(config); }, ErrorCode::kInvalidConfig);
  }
};

TEST_F(Libsvm, IndicesOfALineAreABag) {
  const ReadResult result =
      read_text(config("1 3:1 7:1.0 # a comment\n0\n\n# nothing else\n0 \t5:1\r\n",
                       DataFormat::kLibsvm, {}, {"features"}));
  ASSERT_EQ(result.rows.size(), 3U) << testing::PrintToString(result.bad);
  EXPECT_EQ(result.rows[0].bags, (std::vector<Ids>{{3, 7}}));
  EXPECT_EQ(result.rows[1].bags, (std::vector<Ids>{{}}));
  EXPECT_EQ(result.rows[2].bags, (std::vector<Ids>{{5}}));
  EXPECT_EQ(result.rows[2].number, 4);
}

TEST_F(Libsvm, ValuesAreWeightsOrNumbers) {
  const ReadResult weighted =
      read_text(config("1 3:0.5 7:-2\n", DataFormat::kLibsvm, {}, {"features"}, ":"));
  EXPECT_EQ(weighted.rows.at(0).bags, (std::vector<Ids>{{3, 7}}));
  EXPECT_EQ(weighted.rows.at(0).weights, (std::vector<std::vector<float>>{{0.5F, -2.0F}}));
  const ReadResult numbers =
      read_text(config("1 7:-2 3:0.5\n0 3:1e2\n", DataFormat::kLibsvm, {"3", "7"}, {"9"}));
  EXPECT_EQ(numbers.rows.at(0).numeric, (Strings{show(0.5F), show(-2.0F)}));
  EXPECT_EQ(numbers.rows.at(1).numeric, (Strings{show(100.0F), "-"}));
}

TEST_F(Libsvm, FieldsAreFeatures) {
  const std::string text = "1 0:3:1 2:17:0.25 0:4:1\n0 1:9:1\n";
  DataConfig plain = config(text, DataFormat::kLibffm, {"2"}, {"0", "1"});
  const ReadResult result = read_text(plain);
  EXPECT_EQ(result.rows.at(0).bags, (std::vector<Ids>{{3, 4}, {}}));
  EXPECT_EQ(result.rows.at(0).numeric, Strings{show(0.25F)});
  EXPECT_EQ(result.rows.at(1).bags, (std::vector<Ids>{{}, {9}}));
  EXPECT_EQ(result.rows.at(1).numeric, Strings{"-"});
  const ReadResult weighted = read_text(config(text, DataFormat::kLibffm, {}, {"2"}, ":"));
  EXPECT_EQ(weighted.rows.at(0).weights, (std::vector<std::vector<float>>{{0.25F}}));
}

TEST_F(Libsvm, LabelsOfMinusOneNeedASchemaThatSaysSo) {
  DataConfig signs = config("-1 3:1\n+1 3:1\n1 3:1\n", DataFormat::kLibsvm, {}, {"features"});
  EXPECT_TRUE(contains(read_text(signs).bad.at(0), "log.txt:1: column 'label': expected 0 or 1"));
  signs.schema.label.positive = {"1", "+1"};
  signs.schema.label.negative = {"-1"};
  const ReadResult result = read_text(signs);
  ASSERT_EQ(result.rows.size(), 3U);
  EXPECT_EQ(result.rows[0].label, 0);
  EXPECT_EQ(result.rows[1].label, 1);
}

TEST_F(Libsvm, QueriesAreAColumn) {
  DataConfig queries = config("1 qid:5 3:1\n0 3:1\n", DataFormat::kLibsvm, {}, {"features"});
  queries.group_by = "qid";
  validate(queries);
  EXPECT_EQ(read_text(queries).rows.at(0).bags, (std::vector<Ids>{{3}, {hash_bytes("5")}}));
  const ReadResult unread =
      read_text(config("1 qid:5 3:1\n", DataFormat::kLibsvm, {}, {"features"}));
  EXPECT_EQ(unread.rows.at(0).bags, (std::vector<Ids>{{3}}));
}

TEST_F(Libsvm, FaultsNameTheWordAndWhatIsExpected) {
  const auto fault = [&](const std::string& line, DataFormat format, const Strings& numbers,
                         const Strings& features) {
    const ReadResult result = read_text(config(line + "\n", format, numbers, features));
    EXPECT_EQ(result.bad.size(), 1U) << line;
    return result.bad.empty() ? "" : result.bad.front();
  };
  EXPECT_TRUE(contains(fault("1 3:0.5", DataFormat::kLibsvm, {}, {"features"}),
                       "log.txt:1: column 'features': expected the value 1; `weight_separator"));
  EXPECT_TRUE(
      contains(fault("1 3:1 3:2", DataFormat::kLibsvm, {"3"}, {}), "'3': expected one value"));
  EXPECT_TRUE(
      contains(fault("1 0:3:1 0:4:2", DataFormat::kLibffm, {"0"}, {}), "'0': expected one value"));
  EXPECT_TRUE(
      contains(fault("3:1 4:1", DataFormat::kLibsvm, {"3"}, {}), "expected a label as the first"));
  for (const char* const word : {"3", "x:1", "3:x", "3:", ":1", "-3:1", "1:2:3", "3:nan"}) {
    EXPECT_TRUE(contains(fault(concat("1 ", word), DataFormat::kLibsvm, {"3"}, {}),
                         concat("expected index:value, got \"", word, "\"")))
        << word;
  }
  for (const char* const word : {"3:1", "0:3", "0:x:1", "x:3:1", "0:3:", "::", "0:1:2:3"}) {
    EXPECT_TRUE(contains(fault(concat("1 ", word), DataFormat::kLibffm, {"3"}, {}),
                         concat("expected field:index:value, got \"", word, "\"")))
        << word;
  }
}

TEST_F(Libsvm, ColumnsThatTheFormatDoesNotHaveAreRefused) {
  EXPECT_TRUE(
      contains(refusal(config("", DataFormat::kLibsvm, {"age"}, {})), "no column 'age' in libsvm"));
  EXPECT_TRUE(
      contains(refusal(config("", DataFormat::kLibsvm, {"07"}, {})), "no column '07' in libsvm"));
  EXPECT_TRUE(
      contains(refusal(config("", DataFormat::kLibffm, {}, {"features"})), "'features' in libffm"));
  EXPECT_TRUE(
      contains(refusal(config("", DataFormat::kLibsvm, {"features"}, {})), "read it as a feature"));
  EXPECT_TRUE(
      contains(refusal(config("", DataFormat::kLibffm, {"3"}, {"3"})), "'3' is read in two ways"));
  EXPECT_TRUE(
      contains(refusal(config("", DataFormat::kLibsvm, {}, {"features"}, "=")), "it is ':'"));
  DataConfig header = config("", DataFormat::kLibsvm, {}, {"features"});
  header.schema.header = false;
  EXPECT_TRUE(contains(refusal(header), "has no effect on libsvm"));
}

TEST_F(Libsvm, AFieldDividesTheRowsByItsIndex) {
  std::string text;
  for (int r = 0; r < 400; ++r) text += concat(r % 2, " 0:", r % 40, ":0.5 1:", r, ":1\n");
  for (const bool is_feature : {true, false}) {
    DataConfig divided = config(text, DataFormat::kLibffm, {}, {"1"});
    if (is_feature) {
      divided.schema.features.emplace_back() = {
          .name = "0", .type = IdType::kInt, .weight_separator = ":"};
    }
    divided.eval.by = "0";
    divided.eval.fraction = 0.5;
    validate(divided);
    std::int64_t num_rows = 0;
    for (const Role role : {Role::kTrain, Role::kEval}) {
      const ReadResult result = read_text(divided, {.selection = RowSelection::of(divided, role)});
      const RowPart part(0.5, role == Role::kEval);
      num_rows += std::ssize(result.rows);
      for (const ParsedRow& row : result.rows) {
        EXPECT_TRUE(part.has(std::to_string(row.bags.front().at(0) % 40)));
      }
    }
    EXPECT_EQ(num_rows, 400);
  }
}

TEST_F(Libsvm, WhatCannotDivideTheRowsIsRefused) {
  DataConfig divided = config("1 3:1\n0 4:1\n", DataFormat::kLibsvm, {}, {"features"});
  divided.eval.fraction = 0.5;
  divided.eval.by = "features";
  EXPECT_TRUE(contains(refusal(divided), "data.eval.by: 'features' is all indices"));
  divided.eval.by = "qid";
  validate(divided);
  const auto part = RowSelection::of(divided, Role::kEval);
  EXPECT_TRUE(contains(
      error_of([&] { read_text(divided, {.selection = part}); }, ErrorCode::kInvalidConfig),
      "none of the first 2 rows has a value for 'qid'"));
}

TEST_F(Libsvm, AFeatureMayBeKeptToo) {
  DataConfig kept = config("1 0:3:0.5 0:4:1\n", DataFormat::kLibffm, {}, {"0"}, ":");
  kept.eval.path = kept.train.path;
  const auto source = open_batches(Dataset(kept), fixed_transforms(resolve_schema(kept)),
                                   Role::kPredict, {.kept = {"0"}});
  Batch batch;
  ASSERT_TRUE(source->next(batch));
  EXPECT_EQ(batch.kept.at(0).at(0), "3:0.5|4:1");
}

TEST_F(Libsvm, RandomRowsAreThoseOfTheSameCsv) {
  RandomStream random{5};
  std::uint64_t draws = 0;
  const auto below = [&](std::uint64_t bound) { return random.below(draws++, bound); };
  std::string csv = "label,features,0,1\n", svm, ffm;
  for (int r = 0; r < 1000; ++r) {
    const std::string label = below(10) == 0 ? "x" : std::to_string(below(2));
    std::string all;
    std::vector<std::string> fields(2);
    svm += label;
    ffm += label;
    for (std::uint64_t i = below(5); i > 0; --i) {
      const std::string index = std::to_string(100 + below(50));
      const std::string pair = index + ":" + std::to_string(below(8)) + ".5";
      const std::size_t field = below(2);
      svm += " " + pair;
      ffm += " " + std::to_string(field) + ":" + pair;
      all += (all.empty() ? "" : " ") + pair;
      fields[field] += (fields[field].empty() ? "" : " ") + pair;
    }
    csv += label + "," + all + "," + fields[0] + "," + fields[1] + "\n";
    svm += "\n";
    ffm += "\n";
  }
  const auto read = [&](const std::string& name, const std::string& text, const Strings& features) {
    DataConfig config = csv_config(write(name, text), {}, features);
    config.schema.label.column = "label";
    for (FeatureConfig& feature : config.schema.features) {
      feature.weight_separator = ":";
      if (name == "a.csv") feature.separator = " ";
    }
    return read_text(config, {.num_threads = 3}, {.block_bytes = 256});
  };
  const ReadResult expected = read("a.csv", csv, {"features"});
  EXPECT_EQ(read("a.svm", svm, {"features"}).rows, expected.rows);
  EXPECT_EQ(read("a.ffm", ffm, {"0", "1"}).rows, read("a.csv", csv, {"0", "1"}).rows);
  EXPECT_GT(expected.num_bad, 50);
  EXPECT_GT(expected.rows.size(), 500U);
}

}  // namespace
}  // namespace satrap::data
