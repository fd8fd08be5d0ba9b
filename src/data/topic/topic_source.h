#pragma once

#include <memory>
#include <string>

#include "satrap/data/config.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "satrap/data/topic.h"
#include "src/data/rows/bad_row_policy.h"
#include "src/data/terms/file_format.h"
#include "src/data/topic/topic_log.h"

namespace satrap::data {

/// The format of a topic's messages, or of the lines in them.
FileFormat format_of_topic(const DataConfig& config);

/// The rows of one pass over the topic of the training data. `start` is where an epoch begins, or
/// the job continues. `schema` must outlive it; `log` may be null.
std::unique_ptr<RowBlockSource> open_topic_rows(const DataConfig& config,
                                                const Schema& schema,
                                                const TopicPosition& start,
                                                const RowPass& pass,
                                                std::shared_ptr<BadRowPolicy> bad_rows,
                                                std::shared_ptr<TopicLog> log);

}  // namespace satrap::data
