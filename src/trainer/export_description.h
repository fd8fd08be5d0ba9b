#pragma once

#include <nlohmann/json.hpp>

#include "loaded_model.h"

namespace satrap::trainer {

/// What export.json says of the way from a row of text to the dense network's inputs: "labels",
/// "text", "numeric", "features", "tables" (without their files) and "model".
nlohmann::ordered_json describe_model(const LoadedModel& loaded);

}  // namespace satrap::trainer
