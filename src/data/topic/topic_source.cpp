#include "src/data/topic/topic_source.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "src/data/terms/topic_url.h"
#include "src/data/text/text_rows.h"
#include "src/data/topic/kafka.h"
#include "src/data/topic/message_cutter.h"
#include "src/data/topic/message_parser.h"

namespace satrap::data {
namespace {

std::int64_t timeout_ms_of(const KafkaConfig& config) {
  return static_cast<std::int64_t>(1e3 * parse_duration(config.timeout));
}

TopicUrl topic_url_of(const DataConfig& config) {
  return TopicUrl::parse(config.train.path.front());
}

std::unique_ptr<KafkaConsumer> open_topic(const DataConfig& config, const std::atomic<bool>* stop) {
  const TopicUrl url = topic_url_of(config);
  KafkaSettings settings{.brokers = url.brokers,
                         .topic = url.topic,
                         .group = config.kafka.group,
                         .properties = {},
                         .timeout_ms = timeout_ms_of(config.kafka),
                         .stop = stop};
  for (const std::string& property : config.kafka.properties) {
    const std::size_t equals = property.find('=');  // is there: validate()
    settings.properties.emplace_back(property.substr(0, equals),
                                     with_environment(property.substr(equals + 1)));
  }
  const KafkaLibrary* library = nullptr;
  try {
    library = &kafka_library();
  } catch (const Error& error) {
    throw Error(error.code(), concat("'", url.text(), "' is a topic of Kafka: ", error.what()));
  }
  return library->open(settings);
}

std::vector<KafkaWatermarks> find_watermarks(const DataConfig& config, KafkaConsumer& consumer) {
  std::vector<KafkaWatermarks> found = consumer.watermarks();
  if (!found.empty()) return found;
  const TopicUrl url = topic_url_of(config);
  std::vector<std::string> topics = consumer.topics();
  std::erase_if(topics, [](const std::string& name) { return name.starts_with("__"); });
  const std::string guess = nearest(url.topic, topics);
  std::string names;
  constexpr std::size_t kMaxNames = 10;
  for (std::size_t i = 0; i < std::min(topics.size(), kMaxNames); ++i) {
    names += (i == 0 ? "" : ", ") + topics[i];
  }
  throw Error(
      ErrorCode::kInvalidConfig,
      concat("data.train.path: there is no topic '", url.topic, "' at kafka://", url.brokers,
             guess.empty() ? (names.empty() ? "; no topic is there" : "; there are " + names)
                           : "; did you mean '" + guess + "'?"));
}

std::int64_t end_of(const DataConfig& config, const KafkaWatermarks& marks) {
  return config.kafka.is_endless() ? TopicPosition::kNoEnd : marks.high;
}

void require_still_there(const DataConfig& config,
                         std::size_t partition,
                         const TopicPosition::Partition& at,
                         const KafkaWatermarks& marks,
                         const std::string& checkpoint) {
  const std::string name = concat(topic_url_of(config).text(), ", partition ", partition);
  const bool wants_more = at.end == TopicPosition::kNoEnd || at.next < at.end;
  if (wants_more && at.next < marks.low) {
    throw Error(
        ErrorCode::kInvalidData,
        concat("cannot continue from ", checkpoint, ": ", name, ": the message with offset ",
               at.next, ", which is next, is no longer there: the first one is ", marks.low,
               "; what the topic has deleted cannot be trained on: begin a new job with "
               "train.warm_start.from"));
  }
  if (at.next > marks.high) {
    throw Error(ErrorCode::kInvalidData,
                concat("cannot continue from ", checkpoint, ": ", name, ": offset ", at.next,
                       " is next, and the topic ends at ", marks.high,
                       "; was it deleted and made again? Begin a new job with "
                       "train.warm_start.from"));
  }
}

}  // namespace

bool reads_topic(const DataConfig& config) {
  return !config.train.path.empty() && config.train.path.front().starts_with(TopicUrl::kScheme) &&
         !config.is_synthetic();
}

TopicPosition begin_topic(const DataConfig& config, const std::atomic<bool>* stop) {
  const std::unique_ptr<KafkaConsumer> consumer = open_topic(config, stop);
  const std::vector<KafkaWatermarks> marks = find_watermarks(config, *consumer);
  const std::string& start = config.kafka.start;
  std::vector<std::int64_t> by_time;
  if (start != "earliest" && start != "latest") {
    by_time = consumer->offsets_at(parse_utc_time(start));
  }
  TopicPosition position{
      .topic = topic_url_of(config).topic, .epoch = 0, .row = 0, .turn = 0, .partitions = {}};
  for (std::size_t p = 0; p < marks.size(); ++p) {
    std::int64_t first = start == "earliest" ? marks[p].low : marks[p].high;
    if (!by_time.empty() && by_time[p] >= 0) first = by_time[p];
    position.partitions.push_back({.first = first, .next = first, .end = end_of(config, marks[p])});
  }
  return position;
}

TopicPosition continue_topic(const DataConfig& config,
                             const TopicPosition& saved,
                             const std::string& checkpoint,
                             const std::atomic<bool>* stop) {
  const std::string topic = topic_url_of(config).topic;
  if (saved.topic != topic) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("cannot continue from ", checkpoint, " with topic '", topic,
                       "': it has a position in topic '", saved.topic,
                       "'; begin a new job with train.warm_start.from"));
  }
  const std::unique_ptr<KafkaConsumer> consumer = open_topic(config, stop);
  const std::vector<KafkaWatermarks> marks = find_watermarks(config, *consumer);
  if (marks.size() < saved.partitions.size()) {
    throw Error(ErrorCode::kInvalidData,
                concat("cannot continue from ", checkpoint, ": topic '", topic, "' had ",
                       saved.partitions.size(), " partitions and has ", marks.size(),
                       "; was it deleted and made again?"));
  }
  TopicPosition position = saved;
  for (std::size_t p = 0; p < marks.size(); ++p) {
    if (p >= position.partitions.size()) {
      if (!config.kafka.is_endless()) break;
      position.partitions.push_back({.first = marks[p].low, .next = marks[p].low});
      continue;
    }
    TopicPosition::Partition& partition = position.partitions[p];
    const bool had_end = partition.end != TopicPosition::kNoEnd;
    if (had_end == config.kafka.is_endless()) partition.end = end_of(config, marks[p]);
    require_still_there(config, p, partition, marks[p], checkpoint);
  }
  return position;
}

void commit_topic(const DataConfig& config, const TopicPosition& position) {
  std::vector<std::int64_t> offsets;
  for (const TopicPosition::Partition& partition : position.partitions) {
    offsets.push_back(partition.next);
  }
  open_topic(config, nullptr)->commit(offsets);
}

FileFormat format_of_topic(const DataConfig& config) {
  return format_of(config.format, config.train.path.front());
}

std::unique_ptr<RowBlockSource> open_topic_rows(const DataConfig& config,
                                                const Schema& schema,
                                                const TopicPosition& start,
                                                const RowPass& pass,
                                                std::shared_ptr<BadRowPolicy> bad_rows,
                                                std::shared_ptr<TopicLog> log) {
  const FileFormat format = format_of_topic(config);
  const bool continues = start.epoch == pass.epoch && start.row <= pass.first_row;
  auto messages = std::make_unique<MessageCutter>(
      schema, open_topic(config, pass.stop), topic_url_of(config).text(),
      continues ? start : start.beginning(pass.epoch), pass,
      MessageCutter::Limits{.timeout_ms = timeout_ms_of(config.kafka)}, std::move(log), format);
  const auto make_parser = [&]() -> std::unique_ptr<BlockParser> {
    if (is_columnar(format)) return std::make_unique<MessageParser>(schema, pass);
    return make_block_parser(format, schema, pass);
  };
  return std::make_unique<TextRows>(std::move(messages), make_parser, pass, std::move(bad_rows));
}

}  // namespace satrap::data
