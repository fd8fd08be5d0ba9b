#pragma once

#include <cstdint>
#include <string>

#include "satrap/data/schema.h"
#include "src/data/topic/message_taker.h"

namespace satrap::data {

/// Messages of columns, each a stream or a file of Arrow IPC or a file of Parquet. A message that
/// cannot be read, or lacks a column of the schema, counts as one row.
class ColumnMessages : public MessageTaker {
 public:
  /// As make_message_taker.
  ColumnMessages(const Schema& schema, const std::string& name);

  void take(const KafkaMessage& message,
            const std::string& partition,
            std::int64_t& to_skip,
            TextBlock& block) override;

 private:
  const Schema& schema_;
};

}  // namespace satrap::data
