#include "src/data/terms/topic_url.h"

#include <cstdlib>

#include <gmock/gmock.h>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(const std::string& text) {
  try {
    TopicUrl::parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TopicUrl, HasBrokersAndATopic) {
  const TopicUrl url = TopicUrl::parse("kafka://one:9092,two/ad.clicks_2-x");
  EXPECT_EQ(url.brokers, "one:9092,two");
  EXPECT_EQ(url.topic, "ad.clicks_2-x");
  EXPECT_EQ(url.text(), "kafka://one:9092,two/ad.clicks_2-x");
}

TEST(TopicUrl, OtherTextIsRefused) {
  EXPECT_THAT(refusal("kafka://one"), HasSubstr("names no topic; a topic is written kafka://"));
  EXPECT_THAT(refusal("kafka://one/"), HasSubstr("names no topic"));
  EXPECT_THAT(refusal("kafka:///clicks"), HasSubstr("names no broker"));
  EXPECT_THAT(refusal("kafka://one/a/b"), HasSubstr("characters other than"));
  EXPECT_THAT(refusal("http://one/a"), HasSubstr("does not begin with kafka://"));
}

TEST(TopicUrl, APasswordIsRefusedAndNotShown) {
  EXPECT_THAT(refusal("kafka://me:hush@one/clicks"),
              AllOf(HasSubstr("sasl.password"), Not(HasSubstr("hush"))));
}

TEST(UtcTime, IsReadWithAndWithoutTheTimeOfDay) {
  EXPECT_EQ(parse_utc_time("1970-01-02"), 86'400'000);
  EXPECT_EQ(parse_utc_time("1970-01-01T01:02:03Z"), 3'723'000);
  EXPECT_EQ(parse_utc_time("2026-11-26T00:00:00"), 1'795'651'200'000);
  EXPECT_THROW(parse_utc_time("yesterday"), Error);
  EXPECT_THROW(parse_utc_time("2026-11-26 noon"), Error);
  EXPECT_EQ(parse_utc_time("2028-02-29"), parse_utc_time("2028-03-01") - 86'400'000);
  EXPECT_THROW(parse_utc_time("2026-02-29"), Error);
  EXPECT_THROW(parse_utc_time("2026-02-31T00:00:00Z"), Error);
}

TEST(WithEnvironment, NamesBecomeTheirValues) {
  ::setenv("TEST_KAFKA_SECRET", "hush", 1);
  EXPECT_EQ(with_environment("a ${TEST_KAFKA_SECRET} ${TEST_KAFKA_SECRET}$"), "a hush hush$");
  EXPECT_EQ(with_environment("plain ${"), "plain ${");
  EXPECT_THROW(with_environment("${TEST_KAFKA_NOT_SET}"), Error);
}

TEST(WithEnvironment, OnlyVariablesThatAreMeantForBrokersGoThere) {
  ::setenv("TEST_OTHER_SECRET", "hush", 1);
  EXPECT_THROW(with_environment("${TEST_OTHER_SECRET}"), Error);
  EXPECT_THROW(check_environment_names("${KAFKA_USER}${SATRAP_TOKEN}"), Error);
  EXPECT_THROW(check_environment_names("${}"), Error);
  EXPECT_NO_THROW(check_environment_names("${KAFKA_USER} ${OUR_KAFKA_PASSWORD} plain ${"));
}

}  // namespace
}  // namespace satrap::data
