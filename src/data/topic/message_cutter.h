#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "satrap/data/topic_position.h"
#include "src/data/files/byte_stream.h"
#include "src/data/terms/file_format.h"
#include "src/data/text/text_block_source.h"
#include "src/data/topic/broker_watch.h"
#include "src/data/topic/kafka.h"
#include "src/data/topic/message_taker.h"
#include "src/data/topic/topic_log.h"

namespace satrap::data {

/// Makes blocks of the lines, or columns, of a topic's messages, each of one partition's. The
/// partitions take turns, of kMessagesPerTurn offsets each, counted from the partition's first. So
/// of a topic with an end, the order of the rows follows from the offsets alone. Without an end, a
/// partition that has no message now loses its turn. A block has rows of one turn of the pass's
/// stream: it may end within a message.
class MessageCutter : public TextBlockSource {
 public:
  static constexpr std::int64_t kMessagesPerTurn = 1000;

  struct Limits {
    std::int64_t block_bytes = std::int64_t{256} << 10;  // a block is full when it has so many
    std::int64_t block_rows = std::int64_t{16} << 10;    // or so many rows
    std::int64_t timeout_ms = 60'000;
    int wait_ms = 100;  // between looks for cancel() and the job's stop
  };

  /// `schema` must outlive the cutter. `name` of the topic for people; `start` is the place of a
  /// row that is not after pass.first_row; `log`, if any, is told what is read.
  MessageCutter(const Schema& schema,
                std::unique_ptr<KafkaConsumer> consumer,
                const std::string& name,
                const TopicPosition& start,
                const RowPass& pass,
                const Limits& limits,
                std::shared_ptr<TopicLog> log = nullptr,
                FileFormat format = FileFormat::kDelimited);

  /// Throws Error(kIo) after a wait of the timeout, Error(kInvalidData) if messages are gone.
  bool next(TextBlock& block) override;
  void cancel() override { interruption_.cancel(); }
  bool was_cancelled() const override { return interruption_.is_cancelled(); }
  std::int64_t bytes_read() const override { return bytes_read_.load(std::memory_order_relaxed); }
  std::int64_t rows_read() const override { return rows_read_.load(std::memory_order_relaxed); }
  std::int64_t lag() const override { return lag_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;

  struct Partition {
    TopicPosition::Partition at;
    std::shared_ptr<const std::string> name;
    KafkaRead read;
    std::size_t taken = 0;        // messages of `read`
    std::int64_t newest_ms = -1;  // the latest KafkaMessage::time_ms that was taken

    bool is_exhausted() const { return at.end != TopicPosition::kNoEnd && at.next >= at.end; }
    std::int64_t end_of_turn() const;

    /// Passes offsets up to the read's end that hold no message. Returns whether that is the limit.
    bool pass_end(std::int64_t limit);
  };

  bool cut(TextBlock& block);
  bool find_turn();
  bool fill(TextBlock& block);
  bool read_more(const TextBlock& block, std::int64_t limit);
  void take(TextBlock& block, const KafkaMessage& message);
  bool put_back(TextBlock& block, std::int64_t lines_before, std::int64_t skipped);
  void wait(bool is_owed);
  [[noreturn]] void fail_gone(const Partition& partition);
  bool ends() { return is_endless_ ? interruption_.ends_pipe() : interruption_.is_cancelled(); }
  std::int64_t note_progress();
  Partition& current() { return partitions_[static_cast<std::size_t>(turn_)]; }

  const RowPass pass_;
  const Limits limits_;
  const std::shared_ptr<TopicLog> log_;
  const std::unique_ptr<MessageTaker> taker_;
  const std::string name_;
  const std::unique_ptr<KafkaConsumer> consumer_;
  BrokerWatch watch_;
  Interruption interruption_;
  std::vector<Partition> partitions_;
  bool is_endless_ = false;

  std::int64_t turn_ = 0;
  std::int64_t next_row_ = 0;
  std::int64_t wanted_rows_ = 0;   // of the block that is being filled, at most
  Clock::time_point next_tell_{};  // RowPass::tells_empty
  std::int64_t num_idle_ = 0;      // partitions without a message, one turn after another
  std::int64_t num_without_value_ = 0;
  std::int64_t taken_bytes_ = 0;  // of messages of the block that is being filled
  std::atomic<std::int64_t> bytes_read_{0}, rows_read_{0}, lag_{-1};
};

}  // namespace satrap::data
