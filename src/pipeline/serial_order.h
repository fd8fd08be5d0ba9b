#pragma once

#include <cstdint>

#include "satrap/pipeline/step_queue.h"
#include "satrap/table/step_clock.h"

namespace satrap::pipeline {

/// The next lookup or update, if one thread runs them all: a StepClock says what the training mode
/// allows. deterministic leaves no choice. Otherwise lookups come just in time, so that they read
/// rows as new as they can without the dense stage waiting: none while the result of another stands
/// ready, and if an update is due too, the lookup comes first only if the dense stage waits for it.
/// It has no threads and no rows.
class SerialOrder {
 public:
  enum class Action { kWait, kLookUp, kUpdate, kEnd };

  /// The rules must be for one rank, and not async.
  explicit SerialOrder(const table::StepClock::Rules& rules)
      : is_deterministic_(rules.deterministic),
        clock_(rules),
        looked_up_(rules.first_step - 1),
        pushed_(rules.first_step - 1) {}

  /// The next action. The caller performs and notes it before it asks again.
  Action next(const StepQueue::State& queue);
  void note_looked_up();
  void note_updated();

  /// All updates up to this step have been made.
  std::int64_t applied() const { return clock_.applied(); }

 private:
  bool is_deterministic_;
  table::StepClock clock_;
  std::int64_t looked_up_, pushed_;  // steps
};

}  // namespace satrap::pipeline
