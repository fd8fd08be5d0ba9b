#pragma once

#include <string>
#include <vector>

#include "satrap/data/dataset.h"
#include "satrap/data/role.h"

namespace satrap::data {

/// The files of training or evaluation, and what each column of the first one is used for, a line
/// each. Opens every file and reads its beginning: throws as reading it would, if it is missing, is
/// no text, or its columns do not fit the schema. Of rows that are generated, or are a part of the
/// training data, it says so. The columns of a topic are those that the schema names. `slices` are
/// those of train.slices.
std::string describe_columns(const Dataset& data,
                             Role role,
                             const std::vector<std::string>& slices = {});

/// Throws as reading would, if a file of training or evaluation is missing, or the first one's
/// columns do not fit the schema, or lack one of `slices` (train.slices). Reads nothing that can be
/// read only once, or is far away.
void check_columns(const Dataset& data, Role role, const std::vector<std::string>& slices = {});

}  // namespace satrap::data
