#include "src/checkpoint/data_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checkpoint/small_checkpoint.h"

namespace satrap::checkpoint {
namespace {

using testing::HasSubstr;

const std::vector<data::DataFile> kFiles = {{.path = "day_1.tsv",
                                             .bytes = 12,
                                             .modified_ns = 1'700'000'000'000'000'001,
                                             .checksum = "0123456789abcdef",
                                             .first_row = 0,
                                             .num_rows = 3},
                                            {.path = "\"quoted\"\n.tsv", .bytes = 5}};

TEST(DataRecord, ReadsBackAsItWasWritten) {
  EXPECT_EQ(parse_data_record(data_record(kFiles), "data.json"), kFiles);
  EXPECT_TRUE(parse_data_record(data_record({}), "data.json").empty());
}

TEST(DataRecord, HasALineForEachFile) {
  EXPECT_EQ(data_record({kFiles[0]}),
            "{\"train\": [\n"
            "{\"path\":\"day_1.tsv\",\"bytes\":12,\"modified_ns\":1700000000000000001,"
            "\"xxh3\":\"0123456789abcdef\",\"first_row\":0,\"rows\":3}\n"
            "]}\n");
}

TEST(DataRecord, APathThatIsNotUtf8IsKeptApproximately) {
  const auto files = parse_data_record(data_record({{.path = "caf\xE9.tsv", .bytes = 5}}), "");
  EXPECT_EQ(files.at(0).path, "caf\xEF\xBF\xBD.tsv");
}

TEST(DataRecord, AnythingElseIsCorrupt) {
  for (const char* text : {"", "[]", "{\"train\": [{\"path\": \"a\"}]}", "{\"train\": [7]}"}) {
    EXPECT_THAT(error_of(ErrorCode::kCorrupt, [&] { parse_data_record(text, "step-5/data.json"); }),
                HasSubstr("step-5/data.json: not a record of training files"))
        << text;
  }
}

}  // namespace
}  // namespace satrap::checkpoint
