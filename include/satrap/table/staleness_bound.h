#pragma once

#include <cstdint>

namespace satrap::table {

/// How many updates the lookups of a step may miss in hybrid training: those of step t, counted
/// from 1, see at least the updates of steps <= oldest_version(t) = t - 1 - at(t). The bound is the
/// same for all steps, or grows with them up to its maximum: at(t) = min(max, floor(factor * √t)).
/// An Adagrad step shrinks as 1/√t, so that a growing bound keeps the sum of the steps that are
/// computed from the same rows in proportion. It costs nothing from step (max / factor)² on.
///
/// The version never decreases from a step to the next. All of it is a function of the step alone.
class StalenessBound {
 public:
  /// factor: above 0 and at most 1; or 0: the same bound for all steps. Throws Error(kInternal) for
  /// others, and for a negative maximum.
  StalenessBound(std::int64_t max = 0,  // NOLINT(google-explicit-constructor)
                 double factor = 0.0);

  std::int64_t max() const { return max_; }
  double factor() const { return factor_; }

  std::int64_t at(std::int64_t step) const;
  std::int64_t oldest_version(std::int64_t step) const { return step - 1 - at(step); }

  /// The last step whose oldest_version is at most `version`.
  std::int64_t last_reader(std::int64_t version) const;

 private:
  std::int64_t max_;
  double factor_;
};

}  // namespace satrap::table
