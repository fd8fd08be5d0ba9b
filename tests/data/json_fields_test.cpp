#include "src/data/text/json_fields.h"

#include <cmath>

#include <nlohmann/json.hpp>

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

std::uint64_t id(std::string_view text) { return hash_bytes(text); }

class JsonLines : public FilesTest {
 protected:
  /// A job that reads the label "y", the number "n" and the feature "f".
  DataConfig config(const std::string& text) {
    return csv_config(write("log.jsonl", text), {"n"}, {"f"});
  }
  ReadResult read(const std::string& text) { return read_text(config(text)); }
  ParsedRow row(const std::string& line) {
    const ReadResult result = read(line + "\n");
    EXPECT_EQ(result.rows.size(), 1U) << line << testing::PrintToString(result.bad);
    return result.rows.empty() ? ParsedRow() : result.rows.front();
  }
  std::string fault(const std::string& line) {
    const ReadResult result = read(line + "\n");
    EXPECT_EQ(result.bad.size(), 1U) << line;
    return result.bad.empty() ? "" : result.bad.front();
  }
};

TEST_F(JsonLines, ValuesAreTheirTexts) {
  const ParsedRow found = row(R"({"n": -1.5e2, "f": 17, "y": 1})");
  EXPECT_EQ(found.label, 1);
  EXPECT_EQ(found.numeric, Strings{show(-150.0F)});
  EXPECT_EQ(found.bags, std::vector<Ids>{{id("17")}});
  EXPECT_EQ(row(R"({"y":"0","n":"2","f":"17"})").bags, found.bags);
  EXPECT_EQ(row(R"({"y": 0, "n": 2, "f": 17.0})").bags, found.bags);
  EXPECT_EQ(row(R"({"y": 0, "n": true, "f": true})").bags, std::vector<Ids>{{id("true")}});
  EXPECT_EQ(row(R"({"y": true, "n": false, "f": " a "})").bags, std::vector<Ids>{{id(" a ")}});
  EXPECT_EQ(row(R"({"y": true, "n": false})").numeric, Strings{show(0.0F)});
}

TEST_F(JsonLines, WhatIsNotThereIsMissing) {
  for (const char* const line :
       {R"({"y": 1})", R"({"y": 1, "n": null, "f": null})", R"({"y": 1, "n": "", "f": ""})",
        R"({"y": 1, "n": NaN, "f": []})", R"({"y": 1, "f": [null, ""]})"}) {
    const ParsedRow found = row(line);
    EXPECT_EQ(found.numeric, Strings{"-"}) << line;
    EXPECT_EQ(found.bags, std::vector<Ids>{{}}) << line;
  }
  EXPECT_TRUE(contains(fault(R"({"n": 1})"), "log.jsonl:1: column 'y': the label is missing"));
}

TEST_F(JsonLines, ArraysAreBags) {
  const ParsedRow found = row(R"({"y": 1, "f": ["a", 2, null, "a|b", true]})");
  EXPECT_EQ(found.bags, (std::vector<Ids>{{id("a"), id("2"), id("a|b"), id("true")}}));
  DataConfig limited = config("{\"y\": 1, \"f\": [\"a:0.5\", \"b\", \"c:2\"]}\n");
  limited.schema.features[0].max_length = 2;
  limited.schema.features[0].keep = KeptIds::kLast;
  limited.schema.features[0].weight_separator = ":";
  validate(limited);
  const ReadResult result = read_text(limited);
  EXPECT_EQ(result.rows.at(0).bags, (std::vector<Ids>{{id("b"), id("c")}}));
  EXPECT_EQ(result.rows.at(0).weights, (std::vector<std::vector<float>>{{1.0F, 2.0F}}));
}

TEST_F(JsonLines, AListOfOneDividesTheRowsAndALongerOneDoesNot) {
  std::string text;
  for (int r = 0; r < 100; ++r) {
    text += concat("{\"y\": 1, \"u\": [\"", r % 7, "\"], \"f\": ", r % 7, "}\n");
  }
  DataConfig divided = config(text + "{\"y\": 1, \"u\": [1, 2]}\n{\"y\": 1, \"u\": {}}\n");
  divided.eval.fraction = 0.5;
  divided.eval.by = "u";
  std::int64_t num_rows = 0, num_bad = 0;
  for (const Role role : {Role::kTrain, Role::kEval}) {
    const ReadResult result = read_text(divided, {.selection = RowSelection::of(divided, role)});
    const RowPart part(0.5, role == Role::kEval);
    num_rows += std::ssize(result.rows);
    num_bad += result.num_bad;
    for (const ParsedRow& row : result.rows) {
      const auto is_of = [&](int user) { return row.bags[0].at(0) == id(std::to_string(user)); };
      for (int user = 0; user < 7; ++user) {
        EXPECT_TRUE(!is_of(user) || part.has(std::to_string(user)));
      }
    }
    for (const std::string& bad : result.bad) {
      EXPECT_TRUE(contains(bad, "column 'u': data.eval.by divides rows by one number or text"))
          << bad;
    }
  }
  EXPECT_EQ(num_rows, 100);
  EXPECT_EQ(num_bad, 2);
}

TEST_F(JsonLines, AKeyThatNoRowHasCannotDivide) {
  DataConfig divided = config("\n{\"y\": 1}\n{\"y\": 0, \"u\": null}\n");
  divided.eval.fraction = 0.5;
  divided.eval.by = "u";
  const auto part = RowSelection::of(divided, Role::kEval);
  const std::string error =
      error_of([&] { read_text(divided, {.selection = part}); }, ErrorCode::kInvalidConfig);
  EXPECT_TRUE(contains(error, "data.eval.by: none of the first 2 rows has a value for 'u'"))
      << error;
}

TEST_F(JsonLines, KeptTextsOfListsAreJoined) {
  DataConfig kept = config(
      "{\"y\": 1, \"u\": [1, \"a\", null]}\n{\"y\": 1}\n{\"u\": {\"b\": 1}}\n{\"n\": \"x\", \"u\": "
      "[2, 3]}\n");
  kept.eval.path = kept.train.path;
  const auto source = open_batches(Dataset(kept), fixed_transforms(resolve_schema(kept)),
                                   Role::kPredict, {.kept = {"u"}});
  Batch batch;
  ASSERT_TRUE(source->next(batch));
  ASSERT_EQ(batch.num_examples, 4);
  const Strings expected{"1|a", "", "{...}", "2|3"};
  for (std::int64_t r = 0; r < 4; ++r) {
    EXPECT_EQ(batch.kept.at(0).at(r), expected[static_cast<std::size_t>(r)]);
  }
}

TEST_F(JsonLines, KeysMayBeWithinOthers) {
  DataConfig nested = csv_config(
      write("log.jsonl",
            R"({"user": {"id": 1, "home": {"city": "Bern", "x": [{}]}, "age": 5}, "y": 1})"
            "\n"
            R"({"user.id": 2, "user.home": {"city": "Bern"}, "y": 1, "user": {"age": 6}})"
            "\n"
            R"({"user": 3, "y": 1})"
            "\n"),
      {"user.age"}, {"user.id", "user.home.city"});
  const ReadResult result = read_text(nested);
  ASSERT_EQ(result.rows.size(), 3U);
  EXPECT_EQ(result.rows[0].bags, (std::vector<Ids>{{id("1")}, {id("Bern")}}));
  EXPECT_EQ(result.rows[1].bags, (std::vector<Ids>{{id("2")}, {id("Bern")}}));
  EXPECT_EQ(result.rows[2].bags, (std::vector<Ids>{{}, {}}));
  EXPECT_EQ(result.rows[1].numeric, Strings{show(6.0F)});
}

TEST_F(JsonLines, TheLastOfEqualKeysCounts) {
  EXPECT_EQ(row(R"({"y": 0, "f": ["a", "b"], "y": 1, "f": "c"})").bags,
            std::vector<Ids>{{id("c")}});
  EXPECT_EQ(row(R"({"y": 0, "y": 1})").label, 1);
}

TEST_F(JsonLines, EscapesInKeysAndTextsAreTakenBack) {
  EXPECT_EQ(row("{\"\\u0079\": 1, \"f\": \"Z\\u00fcrich \\ud83d\\ude00\\n\\\"\"}").bags,
            std::vector<Ids>{{id("Z\xC3\xBCrich \xF0\x9F\x98\x80\n\"")}});
  EXPECT_EQ(row("{\"y\": 1, \"f\": \"Z\xC3\xBCrich\"}").bags,
            std::vector<Ids>{{id("Z\xC3\xBCrich")}});
}

TEST_F(JsonLines, FaultsNameThePlaceTheKeyAndTheValue) {
  EXPECT_TRUE(contains(fault(R"({"y": 1, "n": "x"})"),
                       "log.jsonl:1: column 'n': expected a number, got \"x\""));
  EXPECT_TRUE(contains(fault(R"({"y": 1, "n": [1]})"), "'n': a list is read as ids alone"));
  EXPECT_TRUE(contains(fault(R"({"y": [1]})"), "'y': a list is read as ids alone"));
  EXPECT_TRUE(contains(fault(R"({"y": 1, "f": {"a": 1}})"), "'f': expected a number, a text"));
  EXPECT_TRUE(contains(fault(R"({"y": 1, "f": [[1]]})"), "got \"[[...]]\""));
  EXPECT_TRUE(contains(fault(R"({"y": 1, "f": tru})"), "got \"tru\""));
  EXPECT_TRUE(contains(fault(R"({"y": 1, "n": -Infinity})"), "got \"-Infinity\""));
  EXPECT_TRUE(contains(fault(R"({"y": 01})"), "got \"01\""));
  EXPECT_TRUE(contains(fault(R"({"y": 2})"), "'y': expected 0 or 1"));
}

TEST_F(JsonLines, LinesThatAreNoObjectAreBadRows) {
  const Strings lines = {"[1, 2]",
                         "17",
                         "\"y\"",
                         "null",
                         "{",
                         "{\"y\": 1",
                         "{\"y\": 1}}",
                         "{\"y\" 1}",
                         "{\"y\": }",
                         "{\"y\": 1}, 2",
                         "{\"y\": 1} {}",
                         "{\"y: 1}",
                         "{\"y\": 1,}",
                         "y,n,f",
                         "{'y': 1}",
                         "{\"y\": [1}",
                         "{\"y\": \"\\x\"}",
                         "{\"f\": \"\xFF\", \"y\": 1}",
                         " "};
  std::string text = "{\"y\": 1}\n";
  for (const std::string& line : lines) text += line + "\n{\"y\": 0}\n";
  const ReadResult result = read(text);
  EXPECT_EQ(result.rows.size(), lines.size() + 1);
  EXPECT_EQ(result.num_bad, std::ssize(lines));
  EXPECT_TRUE(contains(result.bad.at(0), "log.jsonl:2: expected a JSON object on the line; `jq"));
  EXPECT_TRUE(contains(result.bad.at(1), "log.jsonl:4: expected a JSON object on the line, got"));
}

TEST_F(JsonLines, BlankLinesCarriageReturnsAndALastLineWithoutEnd) {
  const ReadResult result = read("\xEF\xBB\xBF{\"y\": 1}\r\n\r\n\n  {\"y\" : 0 } \r\n{\"y\":1}");
  ASSERT_EQ(result.rows.size(), 3U);
  EXPECT_EQ(result.num_bad, 0);
  EXPECT_EQ(result.rows[1].number, 3);
  EXPECT_EQ(result.rows[2].number, 4);
}

TEST_F(JsonLines, LargeIntegersAreTheIdsThatTheyAreWrittenAs) {
  DataConfig numbers = config("{\"y\": 1, \"f\": 18446744073709551615}\n");
  numbers.schema.features[0].type = IdType::kInt;
  EXPECT_EQ(read_text(numbers).rows.at(0).bags, std::vector<Ids>{{UINT64_MAX}});
  EXPECT_EQ(row(R"({"y": 1, "f": 123456789012345678901234567890})").bags,
            std::vector<Ids>{{id("123456789012345678901234567890")}});
}

TEST_F(JsonLines, DeepAndLongLines) {
  const std::string deep = std::string(500, '[') + std::string(500, ']');
  EXPECT_EQ(row("{\"x\": " + deep + ", \"y\": 1}").label, 1);
  const std::string text(std::size_t{1} << 20, 'a');
  EXPECT_EQ(row("{\"x\": \"" + text + "\", \"f\": \"" + text + "\", \"y\": 1}").bags,
            std::vector<Ids>{{id(text)}});
  std::string beyond(5000, '[');
  EXPECT_EQ(read("{\"x\": " + beyond + std::string(5000, ']') + ", \"y\": 1}\n{\"y\": 1}\n")
                .rows.back()
                .number,
            1);
}

TEST_F(JsonLines, PredictionKeepsEveryLine) {
  DataConfig kept = config("{\"f\": 1}\nx\n\n{\"f\": \"b\", \"n\": \"bad\"}\n");
  kept.schema.labels.clear();
  Schema schema = resolve_schema(kept);
  schema.labelled = false;
  schema.kept = {"f"};
  const FileList files = list_files(kept.train.path);
  const auto policy = std::make_shared<BadRowPolicy>(false, BadRowLimit(), [](const auto&) {});
  TextRows rows(schema, files, {.keeps_every_line = true}, policy, {}, nullptr, FileFormat::kJson);
  RowBlock block;
  ASSERT_TRUE(rows.next(block));
  ASSERT_EQ(block.num_rows, 4);
  EXPECT_EQ(block.kept.at(0).at(0), "1");
  EXPECT_EQ(block.kept.at(0).at(1), "");
  EXPECT_EQ(block.kept.at(0).at(3), "b");
}

/// The same random rows as CSV and as JSON lines.
class RandomTwins {
 public:
  explicit RandomTwins(std::uint64_t seed) : random_{seed} {}

  void add_row() {
    const Strings labels = {"0", "1", "1", "2", "", "no"};
    const Strings numbers = {"", "3", "-1.5", "1e3", "x", "007", "12345678901234567890", "nan"};
    const Strings texts = {"", "a", "b c", "17", "null", "-", "Z\xC3\xBCrich"};
    const std::string label = pick(labels), number = pick(numbers), text = pick(texts);
    const std::string integer = pick({"", "5", "-7", "18446744073709551615", "1.0", "z"});
    std::string bag;
    nlohmann::json elements = nlohmann::json::array();
    for (std::uint64_t i = below(4); i > 0; --i) {
      const std::string element = pick({"a", "b:2", "c:0.5", "d:x", ""});
      bag += (elements.empty() ? "" : "|") + element;
      elements.push_back(element);
    }
    csv += label + "," + number + "," + text + "," + integer + "," + bag + "\n";
    std::vector<std::string> pairs = {
        pair("y", label),   pair("n", number),          pair("f", text),
        pair("i", integer), "\"b\":" + elements.dump(), R"("unread":{"y":[1,{"n":"\""}]})"};
    for (std::size_t i = pairs.size(); i > 1; --i) std::swap(pairs[i - 1], pairs[below(i)]);
    for (const std::string& one : pairs) json += (&one == pairs.data() ? "{" : ", ") + one;
    json += below(2) == 0 ? "}\r\n" : " }\n";
  }

  std::string csv = "y,n,f,i,b\n", json;

 private:
  std::uint64_t below(std::uint64_t bound) { return random_.below(draws_++, bound); }
  std::string pick(const Strings& texts) { return texts[below(texts.size())]; }

  /// A number as a number, mostly; nothing as null or as no pair.
  std::string pair(const std::string& key, const std::string& text) {
    const std::string begin = "\"" + key + "\": ";
    if (text.empty()) return below(2) == 0 ? begin + "null" : "\"none\":{}";
    const bool is_number = nlohmann::json::accept(text) && text != "null";
    return begin + (is_number && below(4) > 0 ? text : nlohmann::json(text).dump());
  }

  RandomStream random_;
  std::uint64_t draws_ = 0;
};

TEST_F(JsonLines, RandomRowsAreThoseOfTheSameCsv) {
  RandomTwins twins(11);
  for (int r = 0; r < 3000; ++r) twins.add_row();
  DataConfig config = csv_config(write("log.csv", twins.csv), {"n"}, {"f", "i", "b"});
  config.schema.features[1].type = IdType::kInt;
  config.schema.features[1].missing = MissingId::kOwnId;
  config.schema.features[2].separator = "|";
  config.schema.features[2].weight_separator = ":";
  config.schema.features[2].max_length = 2;
  const ReadResult expected = read_text(config);
  config.train.path = {write("log.jsonl", twins.json)};
  for (const std::int64_t threads : {1, 3}) {
    for (const std::int64_t block_bytes : {64, 1 << 16}) {
      const ReadResult found =
          read_text(config, {.num_threads = threads}, {.block_bytes = block_bytes});
      EXPECT_EQ(found.rows, expected.rows);
      EXPECT_EQ(found.num_bad, expected.num_bad);
    }
  }
  EXPECT_GT(expected.rows.size(), 500U);
  EXPECT_GT(expected.num_bad, 500);
}

}  // namespace
}  // namespace satrap::data
