#pragma once

#include <cstddef>

namespace satrap::pipeline {

/// Stages of a step, whose seconds summary.json reports.
enum Stage : std::size_t {
  kStageRead,       // planner: waiting for and copying a batch
  kStageAgree,      // planner: waiting for the other ranks' planners
  kStagePlan,       // planner: unique keys, rows
  kStagePull,       // embedding thread: waiting for rows from shards
  kStageForward,    // embedding thread: lookups
  kStageDense,      // dense thread: forward, backward, optimizer
  kStageAllreduce,  // dense thread: summing gradients over the ranks
  kStageBackward,   // embedding thread: updates; push thread: summing gradients, sending them
  kStagePush,       // pushed thread: waiting for the shards to accept them
  kStageWait,       // dense thread: waiting for a lookup
  kNumStages,
};

inline constexpr const char* kStageNames[kNumStages] = {
    "read", "agree", "plan", "pull", "forward", "dense", "allreduce", "backward", "push", "wait"};

}  // namespace satrap::pipeline
