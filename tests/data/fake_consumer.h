#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/data/topic/kafka.h"

namespace satrap::data {

/// What a broker has: messages by partition and offset, without a value where it is none.
using FakeTopic = std::vector<std::map<std::int64_t, std::optional<std::string>>>;

/// Reads a topic in memory, which must outlive it and may grow between calls.
class FakeConsumer : public KafkaConsumer {
 public:
  explicit FakeConsumer(const FakeTopic& topic) : topic_(topic) {}

  std::int64_t most_messages = 7;                          // of a read
  std::string unreachable = "";                            // what why_unreachable() says
  const std::atomic<std::int64_t>* first_there = nullptr;  // older messages are gone; null: none
  std::atomic<bool>* stop_at_wait = nullptr;               // is set by wait()
  std::int64_t gone_from = -1;  // messages from here on are gone by the time of the first read
  bool knows_high = true;       // or high() is not known yet
  std::vector<std::int64_t> started;                                   // the offsets of start()
  std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> times;  // of messages, if any

  std::vector<std::string> topics() override { return {"clicks"}; }
  std::vector<KafkaWatermarks> watermarks() override {
    std::vector<KafkaWatermarks> all;
    for (const auto& messages : topic_) {
      const std::int64_t low = first_there == nullptr ? 0 : first_there->load();
      all.push_back({.low = low, .high = messages.empty() ? 0 : messages.rbegin()->first + 1});
    }
    return all;
  }
  std::vector<std::int64_t> offsets_at(std::int64_t) override {
    return std::vector<std::int64_t>(topic_.size(), kNotRead);
  }
  void start(std::span<const std::int64_t> offsets) override {
    started.assign(offsets.begin(), offsets.end());
    next_ = started;
  }
  KafkaRead read(std::int64_t partition, std::int64_t max_messages, int) override {
    std::int64_t& next = next_[static_cast<std::size_t>(partition)];
    KafkaRead result;
    if (first_there != nullptr && next < *first_there) {
      result.is_gone = true;
      return result;
    }
    const auto& messages = topic_[static_cast<std::size_t>(partition)];
    std::vector<KafkaMessage>& taken = taken_[partition];
    taken.clear();
    auto at = messages.lower_bound(next);
    for (; at != messages.end() && std::ssize(taken) < std::min(max_messages, most_messages);
         ++at) {
      result.is_gone = gone_from >= 0 && at->first >= gone_from;
      if (result.is_gone) break;
      const auto& [offset, value] = *at;
      taken.push_back({.offset = offset,
                       .value = value ? value->data() : nullptr,
                       .size = value ? std::ssize(*value) : 0,
                       .time_ms = time_of(partition, offset)});
      next = offset + 1;
    }
    result.messages = taken;
    const std::int64_t last = messages.empty() ? 0 : messages.rbegin()->first + 1;
    const std::int64_t end = std::max(last, end_marks);
    // Told once, with the messages before it.
    if (at == messages.end() && std::exchange(told_end_[partition], end) != end) result.end = end;
    return result;
  }
  void wait(int) override {
    if (stop_at_wait != nullptr) *stop_at_wait = true;
  }
  std::string why_unreachable() override { return unreachable; }
  std::int64_t high(std::int64_t partition) override {
    return knows_high ? watermarks()[static_cast<std::size_t>(partition)].high : -1;
  }
  void commit(std::span<const std::int64_t>) override {}

  std::int64_t end_marks = 0;  // offsets below that hold no message but are passed, if larger

 private:
  std::int64_t time_of(std::int64_t partition, std::int64_t offset) {
    const auto [at, is_new] = times[partition].try_emplace(offset, -1);
    return at->second;
  }

  const FakeTopic& topic_;
  std::vector<std::int64_t> next_;
  std::map<std::int64_t, std::vector<KafkaMessage>> taken_;
  std::map<std::int64_t, std::int64_t> told_end_;
};

}  // namespace satrap::data
