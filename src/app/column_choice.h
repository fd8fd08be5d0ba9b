#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "satrap/data/column_profile.h"
#include "satrap/data/sample.h"
#include "src/app/label_choice.h"

namespace satrap::app {

/// The use of a column: inputs of the model, as entries of data.schema, or a reason for none.
struct ColumnChoice {
  std::string name;
  std::vector<std::string> numeric;   // entries of data.schema.numeric, in YAML
  std::vector<std::string> features;  // of data.schema.features
  std::string reason;                 // what the column is
  bool is_time = false;               // rows stand in the order of this time
  bool is_ascending = false;          // in the order of rows
  bool is_doubtful = false;           // the user should look at it, as the reason says

  bool is_used() const { return !numeric.empty() || !features.empty(); }
};

/// A choice for every column but the label's. Numbers come in twice: as they are, and cut into
/// ranges with an embedding each, which makes the model piecewise; integers with many values that
/// come back also as ids. Left out is what cannot be learned from: the same in all rows, another
/// one in each row, a time; and what tells the label.
std::vector<ColumnChoice> choose_columns(const data::Sample& sample,
                                         const std::vector<data::ColumnProfile>& profiles,
                                         const LabelChoice& label);

/// For rows in the order of a time, the last of which are for evaluation: leaves out columns that
/// ascend with it, such as a month, whose later values nobody has seen.
void leave_out_ascending(std::vector<ColumnChoice>& choices);

/// A column of lists and one of single ids that are often in them; two empty texts: there are none.
std::pair<std::string, std::string> find_history(const data::Sample& sample,
                                                 const std::vector<data::ColumnProfile>& profiles,
                                                 const std::vector<ColumnChoice>& choices);

}  // namespace satrap::app
