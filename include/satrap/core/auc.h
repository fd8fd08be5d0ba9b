#pragma once

#include <span>

#include "satrap/core/sorted_scores.h"

namespace satrap {

/// Area under the ROC curve: the probability that a random positive scores higher than a random
/// negative, ties counting half (Hanley, McNeil 1982). Exact; O(n), by radix sort of the scores.
///
/// Labels may be fractions: label y counts as y of a positive and 1 - y of a negative. With the
/// labels equal to probabilities this is the expectation over labels drawn from them, up to the
/// share 1/n of pairs of a row with itself.
///
/// With weights a pair counts with the product of its weights, in O(n log n), with the same bits in
/// any order of the rows; a row of weight 0 is not there.
///
/// NaN if there is no positive or no negative (or no row at all), or if a score is NaN.
/// Throws Error(kInternal) if the sizes differ, a label is outside [0, 1], or a weight is negative
/// or not finite.
double auc(std::span<const float> scores,
           std::span<const float> labels,         // both [n]
           std::span<const float> weights = {});  // [n], or empty: each is 1

/// The same of rows that have been sorted; labels are in [0, 1].
double auc(const SortedScores& rows);

/// Mean precision over the positives, each at the threshold of its own score: the sum over
/// thresholds of precision times the rise of recall (average_precision_score of scikit-learn).
/// Equal scores share a threshold, so that their order does not count; with labels of 0 and 1 the
/// order of the rows changes no bit. Labels and weights as for auc(); NaN without a positive.
double average_precision(const SortedScores& rows);

}  // namespace satrap
