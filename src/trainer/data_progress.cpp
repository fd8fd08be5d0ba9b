#include "src/trainer/data_progress.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

#include "satrap/pipeline/stages.h"

namespace satrap::trainer {

void DataProgress::look_at(const pipeline::RankShares& shares) {
  lag_ = shares.lag;
  time_ms_ = shares.time_ms;
  read_seconds_ = shares.read_seconds;
}

DataProgress::Topic DataProgress::topic() const {
  const data::ReadStats stats = data_.stats();
  // Without an end, what this rank reads is a part of the topic.
  const bool has_share = data_.is_endless() && !read_seconds_.empty();
  const std::int64_t time_ms = has_share ? time_ms_ : stats.time_ms;
  Topic topic{.lag = has_share ? lag_ : stats.lag};
  if (time_ms < 0) return topic;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::chrono::duration<double> age = now - std::chrono::milliseconds(time_ms);
  topic.age = std::max(0.0, age.count());  // the brokers have clocks of their own
  return topic;
}

std::vector<double> DataProgress::read_seconds() const {
  if (!read_seconds_.empty()) return read_seconds_;
  return {timers_.seconds(pipeline::kStageRead)};
}

std::vector<double> DataProgress::waits_since(const std::vector<double>& before,
                                              double elapsed) const {
  std::vector<double> shares = read_seconds();
  for (std::size_t r = 0; r < shares.size(); ++r) {
    const double since = r < before.size() ? before[r] : 0.0;
    shares[r] = std::clamp((shares[r] - since) / elapsed, 0.0, 1.0);
  }
  return shares;
}

void add_data_waits(const std::vector<double>& shares, nlohmann::ordered_json& json) {
  json["data_wait_share"] = *std::ranges::max_element(shares);
  for (std::size_t r = 0; r < shares.size() && shares.size() > 1; ++r) {
    json["data_wait_of_rank"][std::to_string(r)] = shares[r];
  }
}

void add_topic(const DataProgress::Topic& topic, nlohmann::ordered_json& json) {
  if (topic.lag >= 0) json["lag"] = topic.lag;
  if (topic.age >= 0.0) json["age"] = topic.age;
}

}  // namespace satrap::trainer
