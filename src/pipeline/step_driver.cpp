#include "satrap/pipeline/step_driver.h"

#include <utility>

#include "satrap/core/error.h"
#include "satrap/pipeline/stages.h"

namespace satrap::pipeline {

StepDriver::StepDriver(StepQueue& queue,
                       embedding::RowAccess& access,
                       Options options,
                       StageTimers& timers)
    : options_(std::move(options)),
      queue_(queue),
      access_(access),
      timers_(timers),
      planner_(access.layout(), access.pool()) {
  for (const PendingLookup& lookup : options_.restored) restored_[lookup.step] = lookup;
}

void StepDriver::look_at(const data::Batch& batch, std::int64_t step) {
  const ScopedStage timer(timers_, kStagePlan);
  access_.look_at(batch, step);
}

void StepDriver::make_plan(Work& work) {
  const ScopedStage timer(timers_, kStagePlan);
  work.rows->make_plan(planner_, work.batch, work.step);
}

StepDriver::Lookup StepDriver::look_up(Work* work, std::int64_t version) {
  {
    const ScopedStage timer(timers_, kStagePull);
    version = work->rows->wait().value_or(version);
  }
  work->inputs.begin(work->batch, access_.layout(), access_.on_device());
  {
    const ScopedStage timer(timers_, kStageForward);
    work->read_version = version;
    work->rows->pool(work->batch, work->inputs.pooled(), work->inputs.mask());
  }
  take_restored(*work);  // instead of what was pooled; to the rows the two are the same
  const Lookup lookup{.step = work->step, .read_version = work->read_version};
  const std::int64_t staleness = work->step - 1 - work->read_version;
  SATRAP_CHECK(options_.is_async || staleness <= options_.staleness.at(work->step),
               "lookup of step ", work->step, " read E_", work->read_version, ", bound is ",
               options_.staleness.at(work->step));
  queue_.pass_on(work);
  return lookup;
}

void StepDriver::update(Work* work) {
  const ScopedStage timer(timers_, kStageBackward);
  work->rows->update(work->gradient(), work->step, work->skip());
}

void StepDriver::take_restored(Work& work) {
  auto restored = restored_.extract(work.step);
  if (!restored) return;
  const PendingLookup& lookup = restored.mapped();
  work.read_version = lookup.read_version;
  work.inputs.restore(lookup.pooled, lookup.mask);
}

}  // namespace satrap::pipeline
