#pragma once

#include <string>

#include "satrap/data/schema.h"
#include "src/data/text/column_map.h"

namespace satrap::data {

/// The use of a column, for people: "label", "number, log1p", "feature 'C1', hex".
std::string use_of(const Schema& schema, const ColumnMap::Consumer& consumer);

/// All uses of it, or "not read".
std::string use_of(const Schema& schema, const ColumnMap::Column& column);

}  // namespace satrap::data
