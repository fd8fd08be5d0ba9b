#include "satrap/data/topic_position.h"

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

TEST(TopicPosition, IsReadBackAsItWasWritten) {
  const TopicPosition position{
      .topic = "clicks",
      .epoch = 2,
      .row = 1'234'567'890'123,
      .turn = 1,
      .partitions = {{.first = 3, .next = 17, .end = 20}, {.first = 0, .next = 5}}};
  EXPECT_EQ(TopicPosition::from_json(position.to_json(), "topic.json"), position);
}

TEST(TopicPosition, TextThatIsNoneIsRefused) {
  for (const char* const text :
       {"", "{}", "[]", R"({"topic": "t", "epoch": 0, "row": 0, "turn": 0, "partitions": []})",
        R"({"topic": "t", "epoch": 0, "row": "x", "turn": 0, "partitions": []})"}) {
    EXPECT_THROW(TopicPosition::from_json(text, "topic.json"), Error) << text;
  }
}

}  // namespace
}  // namespace satrap::data
