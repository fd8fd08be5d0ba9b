#pragma once

#include <string>

#include "satrap/data/loader.h"

namespace satrap::data {

/// The files of training or evaluation, and what each column of the first one is used for, a line
/// each. Opens every file and reads its beginning: throws as reading it would, if it is missing, is
/// no text, or its columns do not fit the schema. Of rows that are generated, or are a part of the
/// training data, it says so. The columns of a topic are those that the schema names.
std::string describe_columns(const DataConfig& config, const Schema& schema, Role role);

/// Throws as reading would, if a file of training or evaluation is missing, or the first one's
/// columns do not fit the schema. Reads nothing that can be read only once, or is far away.
void check_columns(const DataConfig& config, const Schema& schema, Role role);

}  // namespace satrap::data
