#pragma once

#include "satrap/data/config.h"
#include "src/data/check/config_checker.h"
#include "src/data/terms/file_format.h"

namespace satrap::data {

/// The rules of an inline schema. `has_lists`: the files divide the ids of a bag themselves.
void check_schema(const ConfigChecker& check, const SchemaConfig& schema, bool has_lists);

/// Checks the schema of files that are all of a format which names its values.
void check_named_schema(const ConfigChecker& check, const SchemaConfig& schema, FileFormat format);

}  // namespace satrap::data
