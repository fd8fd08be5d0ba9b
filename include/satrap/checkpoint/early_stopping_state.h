#pragma once

#include <cstdint>
#include <string>

namespace satrap::checkpoint {

/// State of early stopping after the evaluations so far; saved in checkpoints.
struct EarlyStoppingState {
  std::string metric;
  std::int64_t last_step = -1;  // of the last evaluation; -1: none yet
  std::int64_t best_step = -1;  // of the best one; -1: none had a value
  double best_value = 0.0;
  std::int64_t bad_evaluations = 0;  // since the last one that was better than all before
  friend bool operator==(const EarlyStoppingState&, const EarlyStoppingState&) = default;
};

}  // namespace satrap::checkpoint
