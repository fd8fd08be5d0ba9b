#pragma once

#include <vector>

#include "satrap/table/table_spec.h"

namespace satrap::pipeline {

/// Tables whose rows come from other processes: as floats, whatever the stored type.
inline std::vector<table::TableSpec> as_received(std::vector<table::TableSpec> tables) {
  for (table::TableSpec& table : tables) table.weights = FloatType::kFp32;
  return tables;
}

}  // namespace satrap::pipeline
