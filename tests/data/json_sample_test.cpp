#include "src/data/json_sample.h"

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
