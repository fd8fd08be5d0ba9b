#include "src/data/files/foreign_text.h"

#include "satrap/data/open_rows.h"
#include "satrap/data/schema.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

TEST(ForeignText, JsonLinesAreNamedWithAWayOut) {
  const std::string text = foreign_text(R"({"label": 1, "user": "a"})", true);
  EXPECT_TRUE(contains(text, "is JSON"));
  EXPECT_TRUE(contains(text, "data.format: json"));
  EXPECT_EQ(foreign_text(R"({"label": 1})", false), foreign_text(R"({"label": 1})", true));
}

TEST(ForeignText, NoNameIsAdvisedForATopic) {
  EXPECT_TRUE(contains(foreign_text(R"({"label": 1})", false), ".jsonl"));
  EXPECT_FALSE(contains(foreign_text(R"({"label": 1})", false, /*is_file=*/false), ".jsonl"));
}

TEST(ForeignText, LibsvmAndLibffmAreNamed) {
  EXPECT_TRUE(contains(foreign_text("1 3:1 7:0.5", true), "libsvm"));
  EXPECT_TRUE(contains(foreign_text("-1 0:3:1 2:17:0.25\r", true), "libffm"));
  EXPECT_EQ(foreign_text("1 3:1 7:0.5", false), "") << "may be weighted ids";
}

TEST(ForeignText, HeadersAreNone) {
  for (const char* const line : {"", "label", "y,a,b", "1 2 3", "user time:of_day", "1", "{a},b"}) {
    EXPECT_EQ(foreign_text(line, true), "") << line;
  }
}

class ForeignFile : public FilesTest {};

TEST_F(ForeignFile, IsRefusedWithItsLine) {
  const DataConfig config = csv_config(write("log.csv", "{\"y\": 1}\n"), {}, {"a"});
  const std::string message = error_of([&] {
    RowBlock block;
    open_rows(Dataset(config), Role::kTrain, {})->next(block);
  });
  EXPECT_TRUE(contains(message, "log.csv:1: is JSON"));
}

}  // namespace
}  // namespace satrap::data
