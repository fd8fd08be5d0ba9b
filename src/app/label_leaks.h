#pragma once

#include <string>
#include <vector>

#include "satrap/data/column_profile.h"

namespace satrap::app {

// What a column says about the label without any other: probably more than is known when the label
// is predicted. `texts` and `positive`: of each row, the column's field and whether its label is 1.

/// Whether it has few values, or a value in some rows only, and this says the label of every row:
/// it was written after the event.
bool tells_label(const std::vector<std::string>& texts,
                 const data::ColumnProfile& profile,
                 const std::vector<bool>& positive);

/// The share of pairs of a 1 and a 0 that the numbers of the column put in one order; equal ones
/// count half.
double auc_alone(const std::vector<std::string>& texts,
                 const data::ColumnProfile& profile,
                 const std::vector<bool>& positive);

}  // namespace satrap::app
