#include "satrap/table/step_clock.h"

#include <algorithm>
#include <limits>

#include "satrap/core/error.h"

namespace satrap::table {

StepClock::StepClock(const Rules& rules) : rules_(rules), applied_(rules.first_step - 1) {
  SATRAP_CHECK(rules.num_ranks >= 1 && rules.first_step >= 1, rules.num_ranks,
               " ranks, first step ", rules.first_step);
  SATRAP_CHECK(!rules.async || (!rules.deterministic && !rules.in_step_order),
               "async is never deterministic, nor in the order of steps");
  ranks_.assign(static_cast<std::size_t>(rules.num_ranks),
                {applied_, applied_, std::numeric_limits<std::int64_t>::max()});
}

bool StepClock::may_read(std::int64_t step, std::int64_t least_version) const {
  if (rules_.async) return true;
  if (rules_.enforce_bound && applied_ < rules_.staleness.oldest_version(step)) return false;
  if (!rules_.deterministic && applied_ < least_version) return false;
  return !rules_.in_step_order || std::ranges::all_of(ranks_, [&](const Rank& rank) {
    return rank.read >= std::min(step - 1, rank.last_read);
  });
}

void StepClock::note_read(std::int64_t rank, std::int64_t step) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  SATRAP_CHECK(may_read(step) && step == state.read + 1 && step <= state.last_read, "rank ", rank,
               " reads step ", step, " after ", state.read, " of ", state.last_read, " from E_",
               applied_);
  state.read = step;
}

void StepClock::note_pushed(std::int64_t rank, std::int64_t step) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  SATRAP_CHECK(step == state.pushed + 1 && step <= state.read, "rank ", rank, " pushes step ", step,
               " after ", state.pushed, ", has read ", state.read);
  state.pushed = step;
  if (!rules_.async) return;
  applied_ = std::ranges::min_element(ranks_, {}, &Rank::pushed)->pushed;
}

void StepClock::note_last_read(std::int64_t rank, std::int64_t step) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  SATRAP_CHECK(step >= state.read, "rank ", rank, " has read step ", state.read, ", not only ",
               step);
  state.last_read = step;
}

bool StepClock::may_apply() const {
  if (rules_.async) return false;
  const std::int64_t step = applied_ + 1;
  if (!std::ranges::all_of(ranks_, [&](const Rank& rank) { return rank.pushed >= step; })) {
    return false;
  }
  if (!rules_.deterministic) return true;
  const std::int64_t last_reader = rules_.staleness.last_reader(applied_);
  return std::ranges::all_of(
      ranks_, [&](const Rank& rank) { return rank.read >= std::min(last_reader, rank.last_read); });
}

void StepClock::note_applied() {
  SATRAP_CHECK(may_apply(), "step ", applied_ + 1, " is not due");
  ++applied_;
}

}  // namespace satrap::table
