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
      timers_(timers),
      access_(access),
      planner_(access.layout(), access.pool()) {
  for (const PendingLookup& lookup : options_.restored) restored_[lookup.step] = lookup;
}

void StepDriver::make_plan(Work& work) {
  const ScopedStage timer(timers_, kStagePlan);
  work.rows->make_plan(planner_, work.batch, work.step);
}

void StepDriver::look_up(Work* work, std::int64_t version) {
  {
    const ScopedStage timer(timers_, kStagePull);
    version = work->rows->wait().value_or(version);
  }
  const auto rows = static_cast<std::size_t>(work->batch.num_examples);
  const embedding::FeatureLayout& layout = access_.layout();
  work->pooled.resize(rows * static_cast<std::size_t>(layout.output_width));
  work->mask.resize(rows * static_cast<std::size_t>(layout.mask_width));
  if (!take_restored(*work)) {
    const ScopedStage timer(timers_, kStageForward);
    work->read_version = version;
    work->rows->pool(work->batch, work->pooled, work->mask);
  }
  const std::int64_t staleness = work->step - 1 - work->read_version;
  SATRAP_CHECK(options_.is_async || staleness <= options_.staleness, "lookup of step ", work->step,
               " read E_", work->read_version, ", bound is ", options_.staleness);
  queue_.pass_on(work);
}

void StepDriver::update(Work* work) {
  const ScopedStage timer(timers_, kStageBackward);
  if (work->skip_update) {
    work->rows->skip(work->step);
  } else {
    work->rows->update(work->grad_pooled, work->step);
  }
}

bool StepDriver::take_restored(Work& work) {
  auto restored = restored_.extract(work.step);
  if (!restored) return false;
  PendingLookup& lookup = restored.mapped();
  SATRAP_CHECK(lookup.pooled.size() == work.pooled.size(), "restored lookup of step ", work.step,
               " has another shape than its batch");
  work.read_version = lookup.read_version;
  work.pooled = std::move(lookup.pooled);
  work.mask = std::move(lookup.mask);
  return true;
}

}  // namespace satrap::pipeline
