#pragma once

#include <nlohmann/json_fwd.hpp>

#include "loaded_model.h"

namespace satrap::trainer {

/// The part of export.json that describes how a row of text becomes the dense network's inputs:
/// "labels", "text", "numeric", "features", "tables" (without their files) and "model".
nlohmann::ordered_json describe_model(const LoadedModel& loaded);

}  // namespace satrap::trainer
