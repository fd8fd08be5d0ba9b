#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "satrap/data/schema.h"
#include "src/data/terms/file_format.h"
#include "src/data/text/text_block.h"
#include "src/data/topic/kafka.h"

namespace satrap::data {

/// Adds what the messages of a topic hold to blocks. One thread at a time.
class MessageTaker {
 public:
  virtual ~MessageTaker() = default;

  /// Adds the rows of a message with a value, without the first `to_skip`, which had been read
  /// before; subtracts from that how many the message has. `partition`: its name for people.
  virtual void take(const KafkaMessage& message,
                    const std::string& partition,
                    std::int64_t& to_skip,
                    TextBlock& block) = 0;
};

/// The taker of a format: lines of text, or columns. `schema` must outlive it; `name`: of the
/// topic, for people. `begins`: no message was read before, so that the first one of a format that
/// is obviously another is an error instead of a bad row. Throws Error(kUnavailable) if this satrap
/// was built without what reads the format.
std::unique_ptr<MessageTaker> make_message_taker(FileFormat format,
                                                 const Schema& schema,
                                                 const std::string& name,
                                                 bool begins);

}  // namespace satrap::data
