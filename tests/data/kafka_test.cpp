#include "src/data/topic/kafka.h"

#include "satrap/data/kafka_support.h"
#include "satrap/data/topic.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

TEST(KafkaTest, ABuildWithoutItSaysWhatToInstall) {
  try {
    describe_kafka();
  } catch (const Error& error) {
    DataConfig config;
    config.train.path = {"kafka://broker/clicks"};
    const std::string refusal = error_of([&] { begin_topic(config); }, ErrorCode::kUnavailable);
    EXPECT_EQ(refusal, concat("'kafka://broker/clicks' is a topic of Kafka: ", error.what()));
    EXPECT_TRUE(contains(refusal, "run ./launch/setup.sh kafka"));
    return;
  }
  GTEST_SKIP() << "this build has Kafka";
}

}  // namespace
}  // namespace satrap::data
