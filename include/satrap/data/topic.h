#pragma once

#include <atomic>
#include <string>

#include "satrap/data/config.h"
#include "satrap/data/topic_position.h"

namespace satrap::data {

/// Whether the training data are a topic of Kafka.
bool reads_topic(const DataConfig& config);

/// The start of training on the topic, and the end of an epoch, by data.kafka: asks the brokers.
/// Throws Error(kIo) if they do not answer, Error(kInvalidConfig) if the topic is not there,
/// Error(kUnavailable) in a build without Kafka. `stop`, if any, ends the wait with Error(kIo).
TopicPosition begin_topic(const DataConfig& config, const std::atomic<bool>* stop = nullptr);

/// The same for a job that continues where `saved`, of `checkpoint`, says. Ends stay, so that the
/// rows do; without an end, or with one that is new, those of now. Partitions that were added are
/// read from their first message on if there is no end. Throws also Error(kInvalidConfig) if it is
/// another topic, Error(kInvalidData) if messages to be read are no longer there.
TopicPosition continue_topic(const DataConfig& config,
                             const TopicPosition& saved,
                             const std::string& checkpoint,
                             const std::atomic<bool>* stop = nullptr);

/// Commits the offsets of the position for data.kafka.group, in some seconds. Throws Error(kIo).
void commit_topic(const DataConfig& config, const TopicPosition& position);

}  // namespace satrap::data
