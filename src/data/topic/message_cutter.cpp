#include "src/data/topic/message_cutter.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"

namespace satrap::data {
namespace {

constexpr std::chrono::seconds kTellEvery{1};

bool is_beginning(const TopicPosition& start) {
  return start.row == 0 && std::ranges::all_of(start.partitions, [](const auto& at) {
           return at.next == at.first && at.skip == 0;
         });
}

}  // namespace

std::int64_t MessageCutter::Partition::end_of_turn() const {
  const std::int64_t turns = (at.next - at.first) / kMessagesPerTurn + 1;
  const std::int64_t end = at.first + turns * kMessagesPerTurn;
  return at.end == TopicPosition::kNoEnd ? end : std::min(end, at.end);
}

bool MessageCutter::Partition::pass_end(std::int64_t limit) {
  at.next = std::max(at.next, std::min(read.end, limit));
  return at.next >= limit;
}

MessageCutter::MessageCutter(const Schema& schema,
                             std::unique_ptr<KafkaConsumer> consumer,
                             const std::string& name,
                             const TopicPosition& start,
                             const RowPass& pass,
                             const Limits& limits,
                             std::shared_ptr<TopicLog> log,
                             FileFormat format)
    : pass_(pass),
      limits_(limits),
      log_(std::move(log)),
      taker_(make_message_taker(format, schema, name, is_beginning(start))),
      name_(name),
      consumer_(std::move(consumer)),
      watch_(*consumer_, name, limits.timeout_ms),
      interruption_(pass.stop),
      turn_(start.turn),
      next_row_(start.row) {
  SATRAP_CHECK(start.row <= pass.first_row, "a pass from row ", pass.first_row,
               " cannot start at row ", start.row);
  std::vector<std::int64_t> offsets;
  for (const TopicPosition::Partition& at : start.partitions) {
    Partition& partition = partitions_.emplace_back();
    partition.at = at;
    partition.name =
        std::make_shared<const std::string>(concat(name, ", partition ", offsets.size()));
    is_endless_ |= at.end == TopicPosition::kNoEnd;
    offsets.push_back(partition.is_exhausted() ? KafkaConsumer::kNotRead : at.next);
  }
  consumer_->start(offsets);
  note_progress();
}

bool MessageCutter::next(TextBlock& block) {
  while (cut(block)) {
    if (block.num_lines == 0 || has_rows_of(pass_, block)) return true;
  }
  return false;
}

bool MessageCutter::cut(TextBlock& block) {
  block.reserve(limits_.block_bytes, 0);
  while (!ends() && (pass_.max_rows == 0 || next_row_ < pass_.max_rows) && find_turn()) {
    block.begin = block.end = block.num_lines = 0;
    block.messages.clear();
    block.columns.clear();
    taken_bytes_ = 0;
    wanted_rows_ = std::min(limits_.block_rows, pass_.split.stream.own_end(next_row_) - next_row_);
    const TopicPosition::Partition at = current().at;
    TopicPiece piece{.epoch = pass_.epoch,
                     .first_row = next_row_,
                     .partition = turn_,
                     .begin = at.next,
                     .end = at.next,
                     .skip = at.skip};
    const bool has_more = fill(block);
    if (interruption_.is_cancelled()) return false;
    block.file = current().name;
    block.partition = turn_;
    block.first_row = next_row_;
    next_row_ += block.num_lines;
    rows_read_.store(next_row_, std::memory_order_relaxed);
    block.time_ms = note_progress();
    piece.end = current().at.next;
    piece.num_rows = block.num_lines;
    const bool is_idle = piece.end == piece.begin && piece.num_rows == 0;
    if (log_ && !is_idle) log_->add(piece);
    if (!has_more) turn_ = (turn_ + 1) % std::ssize(partitions_);
    num_idle_ = is_idle ? num_idle_ + 1 : 0;
    const auto now = Clock::now();
    if (block.num_lines > 0) {
      next_tell_ = now + kTellEvery;
      return true;
    }
    if (num_idle_ >= std::ssize(partitions_)) {
      consumer_->wait(limits_.wait_ms);
      wait(/*is_owed=*/false);
      num_idle_ = 0;
      if (!pass_.tells_empty || now < next_tell_) continue;
      next_tell_ = now + kTellEvery;
      block.time_ms = note_progress();
      return true;
    }
  }
  if (num_without_value_ > 0) {
    log_info("{}: {} messages without a value were skipped", name_,
             std::exchange(num_without_value_, 0));
  }
  return false;
}

/// The partition whose turn it is has messages to come. Returns false if none has.
bool MessageCutter::find_turn() {
  for (std::size_t i = 0; i < partitions_.size(); ++i) {
    if (!current().is_exhausted()) return true;
    turn_ = (turn_ + 1) % std::ssize(partitions_);
  }
  return false;
}

/// Adds messages of the current partition to the block. Returns whether the turn goes on.
bool MessageCutter::fill(TextBlock& block) {
  Partition& partition = current();
  const std::int64_t limit = partition.end_of_turn();
  while (partition.at.next < limit) {
    if (taken_bytes_ >= limits_.block_bytes || block.num_lines >= wanted_rows_) return true;
    if (partition.taken == partition.read.messages.size()) {
      if (!read_more(block, limit)) return false;
      continue;
    }
    const KafkaMessage& message = partition.read.messages[partition.taken];
    if (message.offset >=
        limit) {  // those between are not there: compacted, or marks of transactions
      partition.at.next = limit;
      break;
    }
    const std::int64_t lines_before = block.num_lines, skipped = partition.at.skip;
    take(block, message);
    if (put_back(block, lines_before, skipped)) return true;
    if (message.value != nullptr) bytes_read_.fetch_add(message.size, std::memory_order_relaxed);
    ++partition.taken;
    partition.at.next = message.offset + 1;
  }
  partition.at.skip = 0;  // those that compaction has removed
  return false;
}

/// Returns false if the turn is over, because nothing comes and nothing must.
bool MessageCutter::read_more(const TextBlock& block, std::int64_t limit) {
  Partition& partition = current();
  // What the last read said of the place after its messages, which librdkafka says once.
  if (partition.read.is_gone) fail_gone(partition);
  if (partition.pass_end(limit)) return true;
  // Rows that were read once, before the position to resume at, are there and come first.
  const bool is_owed =
      !is_endless_ || partition.at.skip > 0 || next_row_ + block.num_lines < pass_.first_row;
  partition.read = consumer_->read(turn_, std::min(limit - partition.at.next, kMessagesPerTurn),
                                   is_owed ? limits_.wait_ms : 0);
  partition.taken = 0;
  for (const std::string& problem : partition.read.problems) {
    log_warning("{}: {}", *partition.name, problem);
  }
  if (!partition.read.messages.empty()) {
    watch_.note_messages();
    return true;
  }
  if (partition.read.is_gone) fail_gone(partition);
  if (partition.pass_end(limit)) return true;
  if (!is_owed) return false;
  wait(/*is_owed=*/true);
  return !interruption_.is_cancelled();
}

void MessageCutter::take(TextBlock& block, const KafkaMessage& message) {
  if (message.value == nullptr) {
    ++num_without_value_;
    return;
  }
  std::int64_t& newest = current().newest_ms;
  newest = std::max(newest, message.time_ms);
  taker_->take(message, *current().name, current().at.skip, block);
  taken_bytes_ += message.size + 1;  // as if it ended a line
}

/// Leaves to the next block what of the message that was just taken is beyond the turn of the
/// pass's stream. The block had `lines_before`, and `skipped` rows of the message had been read.
/// Returns whether there is such a rest.
bool MessageCutter::put_back(TextBlock& block, std::int64_t lines_before, std::int64_t skipped) {
  const std::int64_t end = pass_.split.stream.own_end(next_row_);
  if (block.num_lines <= end - next_row_) return false;
  block.keep_lines(end - next_row_);
  TopicPosition::Partition& at = current().at;
  at.next = current().read.messages[current().taken].offset;
  at.skip = skipped + block.num_lines - lines_before;
  return true;
}

void MessageCutter::wait(bool is_owed) {
  if (interruption_.is_cancelled()) return;
  watch_.check(is_owed);
  if (is_endless_ || watch_.is_unreachable()) interruption_.ends_pipe();
}

void MessageCutter::fail_gone(const Partition& partition) {
  const std::vector<KafkaWatermarks> all = consumer_->watermarks();
  const std::string first =
      turn_ < std::ssize(all) ? concat(all[static_cast<std::size_t>(turn_)].low) : "unknown";
  throw Error(ErrorCode::kInvalidData,
              concat(*partition.name, ": the message with offset ", partition.at.next,
                     ", which is next, is no longer there: the first one is ", first,
                     "; the topic keeps too little (retention.ms, retention.bytes), or training is "
                     "too slow for it"));
}

/// Sets the lag, and returns TextBlock::time_ms. A partition that has been read to its end does not
/// hold the time up, unless all have.
std::int64_t MessageCutter::note_progress() {
  std::int64_t lag = 0, newest = -1;
  std::optional<std::int64_t> oldest;  // of the newest of partitions that have more
  for (std::size_t p = 0; p < partitions_.size(); ++p) {
    const Partition& partition = partitions_[p];
    const TopicPosition::Partition& at = partition.at;
    const std::int64_t end =
        at.end == TopicPosition::kNoEnd ? consumer_->high(static_cast<std::int64_t>(p)) : at.end;
    const bool is_known = end >= 0;  // when the broker has told
    if (!is_known) lag = -1;
    if (lag >= 0) lag += std::max<std::int64_t>(0, end - at.next);
    newest = std::max(newest, partition.newest_ms);
    if (is_known && at.next >= end) continue;
    oldest = std::min(oldest.value_or(partition.newest_ms), partition.newest_ms);
  }
  lag_.store(lag, std::memory_order_relaxed);
  return oldest.value_or(newest);
}

}  // namespace satrap::data
