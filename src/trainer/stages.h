#pragma once

#include <cstddef>

namespace satrap::trainer {

/// Stages of a step, as summary.json names them: where the seconds of each thread go.
enum Stage : std::size_t {
  kStageRead,      // planner: waiting for and copying a batch
  kStagePlan,      // planner: unique keys, rows
  kStageForward,   // embedding thread: lookups
  kStageDense,     // dense thread: forward, backward, optimizer
  kStageBackward,  // embedding thread: updates
  kStageWait,      // dense thread: waiting for a lookup
  kNumStages,
};

inline constexpr const char* kStageNames[kNumStages] = {"read",  "plan",     "forward",
                                                        "dense", "backward", "wait"};

}  // namespace satrap::trainer
