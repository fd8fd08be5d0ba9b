#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "satrap/data/column_profile.h"
#include "satrap/data/sample.h"

namespace satrap::app {

/// The column to predict, and which of its texts mean 1.
struct LabelChoice {
  std::size_t column = 0;
  std::string yaml;                   // value of data.schema.label
  std::string reason;                 // why this column, and what it says
  bool is_guess = false;              // nothing but its place says that it is one
  std::vector<bool> positive;         // [rows] of the sample; false where the label is missing
  std::vector<std::size_t> outcomes;  // other columns that look like labels: known too late to
                                      // learn from; ascending
  double missing_share = 0.0;
};

/// A text of the data as a comment shows it: the beginning of a long one.
std::string shown_value(const std::string& text);

/// The column named `label` or, if that is empty, the one that looks most like a label. Throws
/// Error(kInvalidConfig) if there is none, naming those that come closest, or if its values cannot
/// be divided into 0 and 1.
LabelChoice choose_label(const data::Sample& sample,
                         const std::vector<data::ColumnProfile>& profiles,
                         const std::string& label);

}  // namespace satrap::app
