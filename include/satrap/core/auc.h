#pragma once

#include <span>

namespace satrap {

/// Area under the ROC curve: the probability that a random positive scores higher than a random
/// negative, ties counting half (Hanley, McNeil 1982). Exact; O(n), by radix sort of the scores.
///
/// Labels may be fractions: label y counts as y of a positive and 1 - y of a negative. With the
/// labels equal to probabilities this is the expectation over labels drawn from them, up to the
/// share 1/n of pairs of a row with itself.
///
/// NaN if there is no positive or no negative (or no row at all), or if a score is NaN.
/// Throws Error(kInternal) if the sizes differ or a label is outside [0, 1].
double auc(std::span<const float> scores, std::span<const float> labels);  // both [n]

}  // namespace satrap
