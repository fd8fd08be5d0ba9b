#pragma once

#include <memory>
#include <string>
#include <vector>

#include "satrap/data/topic_position.h"
#include "src/data/passes/role_passes.h"

namespace satrap::data {

/// Passes over a topic of Kafka, from where the job begins or continues.
class TopicPasses final : public RolePasses {
 public:
  /// `elsewhere`, if not empty, reads the rows.
  TopicPasses(const Dataset& data, Rows rows, const OpenDeliveries& elsewhere);

  bool is_rereadable() const override { return !data().config().kafka.is_endless(); }
  std::shared_ptr<TopicLog> topic_log() const override { return log_; }

 private:
  std::unique_ptr<RowBlockSource> open_limited(const Schema& schema,
                                               const RowPass& pass) const override;
  std::vector<std::string> paths() const override { return data().config().train.path; }

  const std::shared_ptr<const TopicPosition> start_;
  const std::shared_ptr<TopicLog> log_;
  const OpenDeliveries elsewhere_;
};

}  // namespace satrap::data
