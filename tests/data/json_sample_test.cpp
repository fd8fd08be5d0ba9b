#include "src/data/look/json_sample.h"

#include "src/data/look/sample_value.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using Strings = std::vector<std::string>;

class JsonSampleTest : public FilesTest {};

TEST_F(JsonSampleTest, KeysAreColumnsInTheOrderOfTheirFirstRows) {
  const Sample sample = read_sample(
      {write(
          "a.jsonl",
          "{\"click\": 1, \"user\": {\"id\": \"a\", \"age\": 2.50}, \"tags\": [\"x\", 2, null]}\n"
          "\n[1]\n"
          "{\"user\": {\"age\": null}, \"click\": true, \"late\": \"q\", \"all\": [{\"z\": "
          "1}]}\n")},
      100);
  EXPECT_EQ(sample.names, (Strings{"click", "user.id", "user.age", "tags", "late"}));
  EXPECT_EQ(sample.columns,
            (std::vector<Strings>{{"1", "true"}, {"a", ""}, {"2.5", ""}, {"x|2|", ""}, {"", "q"}}));
  EXPECT_EQ(sample.num_rows, 2);
  EXPECT_EQ(sample.num_ragged, 1);
  EXPECT_TRUE(sample.is_whole);
  EXPECT_EQ(sample.format, "");
}

TEST_F(JsonSampleTest, ArraysAreListsEvenOfOneNumber) {
  const std::string text = "{\"price\": [3.5], \"age\": 4}\n{\"price\": [4.5], \"age\": 5}\n";
  EXPECT_EQ(read_sample({write("a.jsonl", text)}, 100).lists, Strings{"price"});
}

TEST_F(JsonSampleTest, NanIsMissingAsInTraining) {
  const std::string text =
      "{\"a\": NaN, \"b\": \"a \\\" NaN\"}\n{\"a\": -Infinity, \"b\": NaN}\nNaN\n{\"a\": nan}\n";
  const Sample sample = read_sample({write("a.jsonl", text)}, 100);
  EXPECT_EQ(sample.columns, (std::vector<Strings>{{"", ""}, {"a \" NaN", ""}}));
  EXPECT_EQ(sample.num_ragged, 2);
}

TEST_F(JsonSampleTest, LinesOfManyLevelsAreRagged) {
  std::string text = "{\"a\": {\"b\": [1]}}\n";
  for (const std::string open : {"{\"a\":", "["}) {
    text += "{\"a\":";
    for (int i = 0; i < 300'000; ++i) text += open;
    text += "1" + std::string(300'000, open == "[" ? ']' : '}') + "}\n";
  }
  const Sample sample = read_sample({write("a.jsonl", text)}, 100);
  EXPECT_EQ(sample.names, Strings{"a.b"});
  EXPECT_EQ(sample.num_ragged, 2);
}

TEST_F(JsonSampleTest, RareKeysAreLeftOut) {
  std::string text;
  for (int r = 0; r < 300; ++r) {
    text +=
        concat("{\"y\": 1, \"of_user\": {\"", r, "\": 1}", r % 50 == 0 ? ", \"z\": 2}\n" : "}\n");
  }
  const Sample sample = read_sample({write("a.jsonl", text)}, 1000);
  EXPECT_EQ(sample.names, (Strings{"y", "z"}));
  EXPECT_EQ(sample.num_rare, 300);
  EXPECT_EQ(sample.num_rows, 300);
}

TEST_F(JsonSampleTest, RowsWithoutAKeyInCommonAreAnError) {
  const std::string error = error_of([&] { read_sample({write("a.jsonl", "{}\n{}\n")}, 100); });
  EXPECT_TRUE(contains(error, "no key with a number, a text or a list")) << error;
}

TEST_F(JsonSampleTest, ItsSizeIsLimited) {
  const Strings lines = {R"({"a": 1})", R"({"a": 2, "b": 3, "c": 4})", R"({"a": 5})"};
  Sample sample;
  sample.is_whole = true;
  sample_json(lines, 100, 4, sample);
  EXPECT_EQ(sample.columns, (std::vector<Strings>{{"1"}, {""}, {""}}));
  EXPECT_EQ(sample.num_rows, 1);
  EXPECT_FALSE(sample.is_whole);
}

TEST_F(JsonSampleTest, HasTheBeginningsOfValuesWithoutEnd) {
  std::string list = "[1";
  for (std::size_t i = 0; i < kMaxValueBytes; ++i) list += ",1";
  const Strings lines = {R"({"a": ")" + std::string(3 * kMaxValueBytes, 'x') + R"(", "b": )" +
                         list + "]}"};
  Sample sample;
  sample_json(lines, 100, 100, sample);
  EXPECT_EQ(sample.columns[0].front(), std::string(kMaxValueBytes, 'x'));
  EXPECT_LE(sample.columns[1].front().size(), kMaxValueBytes + 1);
  EXPECT_TRUE(sample.columns[1].front().ends_with("|1")) << "whole elements";
}

TEST_F(JsonSampleTest, OfLinesThatEndTooEarlyHasNothing) {
  const Strings lines = {R"({"a": 1, "b": {"c": 2)",
                         R"({"a": 1, "b": {"c": 2}, "b2": [3, [4]]})",
                         "[1]",
                         "17",
                         R"("a")",
                         R"({"a": 5} {})",
                         R"({"a": 3, "b": {"c": NaN}})"};
  Sample sample;
  sample_json(lines, 100, 100, sample);
  EXPECT_EQ(sample.names, (Strings{"a", "b.c"}));
  EXPECT_EQ(sample.columns, (std::vector<Strings>{{"1", "3"}, {"2", ""}}));
  EXPECT_EQ(sample.num_ragged, 5);
}

TEST_F(JsonSampleTest, IsKnownByItsFirstRow) {
  const std::string text = "{\"click\": 1}\n{\"click\": 0}\n";
  EXPECT_EQ(read_sample({write("log", text)}, 100).format, "json");
  const Sample sample = read_sample({write("log.gz", gzip(text))}, 1);
  EXPECT_EQ(sample.num_rows, 1);
  EXPECT_FALSE(sample.is_whole);
}

TEST_F(JsonSampleTest, NoObjectIsAnError) {
  const std::string error = error_of([&] { read_sample({write("a.jsonl", "[1]\n2\n")}, 100); });
  EXPECT_TRUE(contains(error, "has no line that is a JSON object")) << error;
}

}  // namespace
}  // namespace satrap::data
