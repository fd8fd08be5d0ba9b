#include "satrap/data/topic_position.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "satrap/core/error.h"

namespace satrap::data {

using TopicJson = nlohmann::ordered_json;

TopicPosition TopicPosition::beginning(std::int64_t of_epoch) const {
  TopicPosition begin = *this;
  begin.epoch = of_epoch;
  begin.row = begin.turn = 0;
  for (Partition& partition : begin.partitions) {
    partition.next = partition.first;
    partition.skip = 0;
  }
  return begin;
}

std::int64_t TopicPosition::num_endless() const {
  return std::ranges::count(partitions, kNoEnd, &Partition::end);
}

TopicPosition TopicPosition::share_of(std::int64_t reader, std::int64_t num_readers) const {
  TopicPosition share = *this;
  std::int64_t number = 0;
  for (Partition& at : share.partitions) {
    if (at.end == kNoEnd && number++ % num_readers != reader) at.end = at.next;
  }
  return share;
}

TopicPosition TopicPosition::share_of_rank(std::int64_t rank, std::int64_t num_ranks) const {
  if (std::ssize(partitions) < num_ranks) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("data.kafka.end: never gives each rank partitions of its own: topic '",
                       topic, "' has ", partitions.size(), ", fewer than the job's ", num_ranks,
                       " ranks; add partitions, or train with fewer ranks"));
  }
  return share_of(rank, num_ranks);
}

TopicPosition TopicPosition::merge(const std::vector<TopicPosition>& shares) {
  TopicPosition all = shares.front();
  for (const TopicPosition& share : shares) all.row = std::max(all.row, share.row);
  for (std::size_t p = 0; p < all.partitions.size(); ++p) {
    all.partitions[p] = shares[p % shares.size()].partitions.at(p);
  }
  return all;
}

std::string TopicPosition::to_json() const {
  TopicJson list = TopicJson::array();
  for (const Partition& partition : partitions) {
    list.push_back({{"first", partition.first},
                    {"next", partition.next},
                    {"end", partition.end},
                    {"skip", partition.skip}});
  }
  const TopicJson json = {
      {"topic", topic}, {"epoch", epoch}, {"row", row}, {"turn", turn}, {"partitions", list}};
  return json.dump(1) + "\n";
}

TopicPosition TopicPosition::from_json(const std::string& text, const std::string& name) {
  try {
    const TopicJson json = TopicJson::parse(text);
    TopicPosition position{.topic = json.at("topic"),
                           .epoch = json.at("epoch"),
                           .row = json.at("row"),
                           .turn = json.at("turn"),
                           .partitions = {}};
    for (const TopicJson& partition : json.at("partitions")) {
      position.partitions.push_back({.first = partition.at("first"),
                                     .next = partition.at("next"),
                                     .end = partition.at("end"),
                                     .skip = partition.value("skip", std::int64_t{0})});
    }
    if (position.turn >= 0 && position.turn < std::ssize(position.partitions)) return position;
    throw Error(ErrorCode::kCorrupt,
                concat(name, ": there is no partition ", position.turn, ", whose turn it is"));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorrupt, concat(name, ": not a position in a topic: ", error.what()));
  }
}

}  // namespace satrap::data
