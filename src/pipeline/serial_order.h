#pragma once

#include <cstdint>

#include "satrap/pipeline/step_queue.h"
#include "satrap/table/step_clock.h"

namespace satrap::pipeline {

/// Which lookup or update comes next where one thread runs them all: a StepClock says what the
/// training mode allows; of two things that are allowed, a lookup comes first if the dense stage
/// has nothing to do, and an update if it has. (deterministic never allows two.) Without threads
/// and without rows.
class SerialOrder {
 public:
  enum class Action { kWait, kLookUp, kUpdate, kEnd };

  /// Of one rank, and not async.
  explicit SerialOrder(const table::StepClock::Rules& rules)
      : clock_(rules), looked_up_(rules.first_step - 1), pushed_(rules.first_step - 1) {}

  /// What to do next. The caller does it, and notes it, before it asks again.
  Action next(const StepQueue::State& queue);
  void note_looked_up();
  void note_updated();

  /// All updates up to this step have been made.
  std::int64_t applied() const { return clock_.applied(); }

 private:
  table::StepClock clock_;
  std::int64_t looked_up_, pushed_;  // steps
};

}  // namespace satrap::pipeline
