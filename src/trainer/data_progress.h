#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "satrap/core/stage_timer.h"
#include "satrap/data/batch_source.h"
#include "satrap/pipeline/work.h"

namespace satrap::trainer {

/// How far the data of all ranks have been read, and how long each rank has waited for them, as far
/// as this rank knows. Used by one thread.
class DataProgress {
 public:
  /// Both outlive it.
  DataProgress(const data::BatchSource& data, const StageTimers& timers)
      : data_(data), timers_(timers) {}

  /// What the ranks have told by a step that is finished.
  void look_at(const pipeline::RankShares& shares);

  struct Topic {
    std::int64_t lag = -1;  // messages; -1: unknown, or there is no topic
    double age = -1.0;      // seconds; negative: unknown
  };
  Topic topic() const;

  /// [ranks] seconds of waiting so far.
  std::vector<double> read_seconds() const;

  /// [ranks] the share of the time `elapsed`, in seconds, since read_seconds() was `before`.
  std::vector<double> waits_since(const std::vector<double>& before, double elapsed) const;

 private:
  const data::BatchSource& data_;
  const StageTimers& timers_;
  std::int64_t lag_ = -1, time_ms_ = -1;  // as RankShares
  std::vector<double> read_seconds_;      // [ranks]; empty: none has told
};

/// Adds `data_wait_share`, of the rank that has waited most, and if there are several that of each.
void add_data_waits(const std::vector<double>& shares, nlohmann::ordered_json& json);

/// Adds `lag` and `age`, where they are known.
void add_topic(const DataProgress::Topic& topic, nlohmann::ordered_json& json);

}  // namespace satrap::trainer
