#include "src/data/files/remote_url.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

std::string refusal_of(const std::string& text) {
  try {
    RemoteUrl::parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.what();
  }
  return "";
}

TEST(RemoteUrl, HasAStoreAndAPathInIt) {
  const RemoteUrl s3 = RemoteUrl::parse("s3://bucket/logs/date=2026-11-27/day_*.csv");
  EXPECT_EQ(s3.authority, "bucket");
  EXPECT_EQ(s3.path, "logs/date=2026-11-27/day_*.csv");
  EXPECT_EQ(s3.with_path("a"), "s3://bucket/a");
  const RemoteUrl hdfs = RemoteUrl::parse("hdfs://name/logs");
  EXPECT_EQ(hdfs.authority, "name:9870");
  EXPECT_EQ(RemoteUrl::parse("hdfs://name:50070/logs").authority, "name:50070");
}

TEST(RemoteUrl, OtherTextIsRefused) {
  EXPECT_THAT(refusal_of("gs://bucket/key"), testing::HasSubstr("no URL of S3 or HDFS"));
  EXPECT_THAT(refusal_of("s3:///key"), testing::HasSubstr("names no bucket"));
  EXPECT_THAT(refusal_of("hdfs:///key"), testing::HasSubstr("names no name node"));
  EXPECT_THAT(refusal_of("s3://bucket"), testing::HasSubstr("names no file"));
  EXPECT_THAT(refusal_of("s3://bucket/"), testing::HasSubstr("names no file"));
  EXPECT_THAT(refusal_of("s3://key:secret@bucket/key"),
              testing::AllOf(testing::HasSubstr("AWS_PROFILE"),
                             testing::Not(testing::HasSubstr("secret@"))));
}

TEST(RemoteUrl, APasswordIsNotShown) {
  for (const std::string url : {"s3://key:PASSWORD@bucket/x", "s3://key:PASS/WORD@bucket/x",
                                "hdfs://user:PASSWORD@name/f", "hdfs://user:PASS/WORD@name/f",
                                "hdfs://user:/PASSWORD@name/f", "s3a://key:PASS/WORD@bucket/x"}) {
    EXPECT_THAT(refusal_of(url), testing::AllOf(testing::HasSubstr("://***@"),
                                                testing::Not(testing::HasSubstr("PASS")),
                                                testing::Not(testing::HasSubstr("WORD"))));
  }
  EXPECT_EQ(without_password("https://user:a@b@host/x"), "https://***@host/x");
  EXPECT_EQ(without_password("https://host/x"), "https://host/x");
  EXPECT_EQ(without_password("a@b://c"), "a@b://c");
}

TEST(RemoteUrl, TheNameOfAFileMayHaveAnAtSign) {
  EXPECT_EQ(RemoteUrl::parse("s3://bucket/a@b.csv").path, "a@b.csv");
  EXPECT_EQ(RemoteUrl::parse("s3://bucket/10:30/a@b.csv").path, "10:30/a@b.csv");
  EXPECT_EQ(RemoteUrl::parse("hdfs://name:9870/a@b.csv").path, "a@b.csv");
}

}  // namespace
}  // namespace satrap::data
