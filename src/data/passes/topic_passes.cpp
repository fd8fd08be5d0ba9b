#include "src/data/passes/topic_passes.h"

#include <utility>

#include "src/data/deliveries/delivered_rows.h"
#include "src/data/topic/topic_source.h"

namespace satrap::data {

TopicPasses::TopicPasses(const Dataset& data, Rows rows, const OpenDeliveries& elsewhere)
    : RolePasses(data, std::move(rows)),
      start_(data.topic_start()),
      log_(std::make_shared<TopicLog>(*start_)),
      elsewhere_(elsewhere) {}

std::unique_ptr<RowBlockSource> TopicPasses::open_limited(const Schema& schema,
                                                          const RowPass& pass) const {
  const std::shared_ptr<BadRowPolicy>& bad_rows = rows().bad_rows;
  if (elsewhere_) {
    return std::make_unique<DeliveredRows>(elsewhere_(data(), pass), pass, bad_rows, nullptr, log_);
  }
  return open_topic_rows(data().config(), schema, *start_, pass, bad_rows, log_);
}

}  // namespace satrap::data
