#include "satrap/data/topic_position.h"

#include <nlohmann/json.hpp>

#include "satrap/core/error.h"

namespace satrap::data {

using TopicJson = nlohmann::ordered_json;

TopicPosition TopicPosition::beginning(std::int64_t of_epoch) const {
  TopicPosition begin = *this;
  begin.epoch = of_epoch;
  begin.row = begin.turn = 0;
  for (Partition& partition : begin.partitions) partition.next = partition.first;
  return begin;
}

std::string TopicPosition::to_json() const {
  TopicJson list = TopicJson::array();
  for (const Partition& partition : partitions) {
    list.push_back({{"first", partition.first}, {"next", partition.next}, {"end", partition.end}});
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
                                     .end = partition.at("end")});
    }
    if (position.turn >= 0 && position.turn < std::ssize(position.partitions)) return position;
    throw Error(ErrorCode::kCorrupt,
                concat(name, ": there is no partition ", position.turn, ", whose turn it is"));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorrupt, concat(name, ": not a position in a topic: ", error.what()));
  }
}

}  // namespace satrap::data
