#pragma once

#include <memory>
#include <string>

#include "satrap/data/config.h"
#include "satrap/data/schema.h"
#include "satrap/data/topic.h"
#include "src/data/file_format.h"
#include "src/data/text_block_source.h"
#include "src/data/topic_log.h"

namespace satrap::data {

/// Of its messages, lines of which they hold.
FileFormat format_of_topic(const DataConfig& config);

/// The lines of one pass over the topic of the training data. `start` is where an epoch begins, or
/// the job continues. `schema` must outlive it; `log` may be null.
std::unique_ptr<TextBlockSource> open_topic_pass(const DataConfig& config,
                                                 const Schema& schema,
                                                 const TopicPosition& start,
                                                 const RowPass& pass,
                                                 std::shared_ptr<TopicLog> log);

}  // namespace satrap::data
