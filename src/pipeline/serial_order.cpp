#include "src/pipeline/serial_order.h"

namespace satrap::pipeline {

SerialOrder::Action SerialOrder::next(const StepQueue::State& queue) {
  // Gradients wait in the order of steps, the oldest for the update that is due.
  while (pushed_ < clock_.applied() + queue.num_gradients) clock_.note_pushed(0, ++pushed_);
  const bool no_more_lookups = queue.is_closed && queue.num_planned == 0;
  if (no_more_lookups) {
    if (clock_.applied() == looked_up_) return Action::kEnd;
    clock_.note_last_read(0, looked_up_);
  }
  const bool is_time = is_deterministic_ || queue.num_looked_up == 0;
  const bool may_look_up = is_time && queue.num_planned > 0 && clock_.may_read(looked_up_ + 1);
  const bool may_update = clock_.may_apply();
  if (may_look_up && (queue.is_wanted || !may_update)) return Action::kLookUp;
  return may_update ? Action::kUpdate : Action::kWait;
}

void SerialOrder::note_looked_up() { clock_.note_read(0, ++looked_up_); }

void SerialOrder::note_updated() { clock_.note_applied(); }

}  // namespace satrap::pipeline
