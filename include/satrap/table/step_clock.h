#pragma once

#include <cstdint>
#include <vector>

#include "satrap/table/staleness_bound.h"

namespace satrap::table {

/// The order of pulls and updates on the rows of one worker, as a state machine. It defines the
/// training modes for any number of ranks. E_t: the rows after all updates of steps <= t; τ(t): the
/// bound of step t.
///
///  - the pull of step t may be read once E_{t-1-τ(t)} exists, never before;
///  - the update of step u may be applied once the gradients of all ranks for it have arrived and
///    E_{u-1} exists; so updates are applied in the order of steps;
///  - deterministic: the update also waits until every rank has read its pulls of all steps t with
///    t-1-τ(t) < u, or has ended before them; so that pulls of step t read E_{t-1-τ(t)} exactly;
///  - in step order: the pull of step t may be read once every rank has read its pull of step t-1,
///    or has ended before it;
///  - async: everything at once; the gradients of each rank are separate updates.
///
/// Each rank reads and pushes steps one after the other. The clock has no threads and no rows.
class StepClock {
 public:
  struct Rules {
    std::int64_t num_ranks = 1;
    bool async = false;
    StalenessBound staleness = 0;  // τ(t)
    bool deterministic = false;
    std::int64_t first_step = 1;
    bool enforce_bound = true;
    bool in_step_order = false;  // not with async
  };
  explicit StepClock(const Rules& rules);

  /// `least_version`: a rank that has time waits for E_v, v >= least_version, though older rows
  /// may be read; below `step`. deterministic and async know no such wish.
  bool may_read(std::int64_t step, std::int64_t least_version = 0) const;
  void note_read(std::int64_t rank, std::int64_t step);

  /// The gradients of `step` of `rank` have arrived; in async mode they have been applied.
  void note_pushed(std::int64_t rank, std::int64_t step);

  /// `rank` will read no step after `step`.
  void note_last_read(std::int64_t rank, std::int64_t step);

  /// Whether the update of step applied() + 1 may be applied. Never in async mode.
  bool may_apply() const;
  void note_applied();

  /// All updates up to this step have been applied; in async mode those of all ranks.
  std::int64_t applied() const { return applied_; }

 private:
  struct Rank {
    std::int64_t read, pushed;
    std::int64_t last_read;
  };
  const Rules rules_;
  std::int64_t applied_;
  std::vector<Rank> ranks_;
};

}  // namespace satrap::table
